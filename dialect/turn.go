package dialect

import "strings"

// Turns are the texts with which the sessions of a server queue for a key. The key has a number, :turn. All texts are ""
// if the database has no such sessions.
//
// Like [Statements], they serve sqllock's own packages.
type Turns struct {
	// Begin, and then Take on the same connection unless it is "", wait for the turn, behind the sessions that wait
	// already. After a minute Take returns 0, not 1, or Begin fails with an error of class [Blocked].
	Begin, Take string
	// End gives the turn up. After makes the session what it was, unless it is "".
	End, After string
	// IsFree returns 1 if no session has the turn, else 0.
	IsFree string
	// Session returns a number that no other session of the server has. It is "" if no pooler gives out sessions.
	Session string
}

// Turns returns the texts for the tables with the given names.
func (d Dialect) Turns(names Names) Turns {
	t := d.fragments.turns
	fill := strings.NewReplacer("{table}", names.Lock, "{schema}", names.Schema).Replace
	t.Begin, t.Take, t.End, t.IsFree = fill(t.Begin), fill(t.Take), fill(t.End), fill(t.IsFree)
	return t
}

// The server grants the locks of its sessions in the order in which they have asked. It ends a session that has the turn,
// and with it the turn, when it has been silent for five seconds: its process was stopped or cut off.
//
// On PostgreSQL the turn belongs to a transaction, because that has a limit for being idle in all versions, and because
// nothing is left behind on the session of a pool. It is READ COMMITTED, and so has no snapshot between statements. One
// that waits has a snapshot, which keeps VACUUM from removing rows that have died since. So it waits for a minute. All is one
// message without arguments: a statement with arguments would keep its snapshot until the next one.
//
// The number is another one for each table, also if tables of several schemas have one name.
var postgresTurns = Turns{
	Begin: "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 5000;" +
		" SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 60000; SELECT pg_advisory_xact_lock(" + postgresTurn + ")",
	End:     "COMMIT",
	IsFree:  "SELECT CASE WHEN pg_try_advisory_xact_lock_shared(" + postgresTurn + ") THEN 1 ELSE 0 END",
	Session: "SELECT pg_backend_pid()",
}

const postgresTurn = "CAST(:turn AS BIGINT) # CAST(CAST(CAST('{table}' AS regclass) AS oid) AS BIGINT)"

// On MySQL and MariaDB the turn belongs to the session. Its name is the server's and not the database's, and has 64
// characters at most.
var mysqlTurns = Turns{
	Begin:  "SET @sqllock_wait_timeout = @@SESSION.wait_timeout, SESSION wait_timeout = 5",
	Take:   "SELECT COALESCE(GET_LOCK(" + mysqlTurn + ", 60), 0)",
	End:    "DO RELEASE_LOCK(" + mysqlTurn + ")",
	After:  "SET SESSION wait_timeout = @sqllock_wait_timeout",
	IsFree: "SELECT COALESCE(IS_FREE_LOCK(" + mysqlTurn + "), 0)",
}

const mysqlTurn = "CONCAT('sqllock ', SHA2(CONCAT(COALESCE(NULLIF('{schema}', ''), DATABASE(), ''), '.', :turn), 224))"
