package sqltext

import (
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

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
	// Session returns a number that no other session of the server has. It is "" if no pooler gives out sessions.
	Session string
	// Yield ends the waits of those of {sessions}, numbers that Session has returned, that wait for a turn, if the
	// server waits for the end of a session that waits for one, of the same database. It is "" if it never does.
	Yield string
}

// Turns returns the texts for the tables with the given names.
func (d Dialect) Turns(names Names) Turns {
	t := d.fragments.turns
	fill := strings.NewReplacer("{table}", names.Lock, "{schema}", names.Schema).Replace
	t.Begin, t.Take, t.End = fill(t.Begin), fill(t.Take), fill(t.End)
	return t
}

// InOrder returns the dialect whose statements acquire a row only if no session has the turn of
// its key: then none waits for it, either. :turn is the number of the key, or 0 for a row that
// is acquired in any case. In :rows it is t.
func (d Dialect) InOrder() Dialect {
	f := d.fragments
	where := func(turn string) string { return "WHERE " + strings.ReplaceAll(f.turnIsFree, "{turn}", turn) }
	all := make(map[dialect.Layout]string)
	one, rows := make(map[dialect.Layout]string), make(map[dialect.Layout]string)
	for layout, text := range f.acquire {
		if d.Returning {
			const conflict = "\nON CONFLICT"
			one[layout] = strings.Replace(text, conflict, "\n"+where("CAST(:turn AS BIGINT)")+conflict, 1)
			all[layout] = strings.Replace(f.acquireAll[layout], "l BIGINT)"+conflict, "l BIGINT, t BIGINT)\n"+where("mine.t")+conflict, 1)
			continue
		}
		free := where(":turn")
		rows[layout] = selectedRow(proposedRow[layout]) + " FROM DUAL " + free
		if f.isMember == "" {
			one[layout], all[layout] = selecting(text, " "+free), selecting(f.acquireAll[layout], "")
		} else {
			one[layout], all[layout] = strings.Replace(text, ofMembers, ofMembers+strings.Replace(" "+free, "WHERE", "AND", 1), 1), f.acquireAll[layout]
		}
	}
	f.acquire, f.acquireAll, f.acquireRow = one, all, rows
	d.fragments = f
	return d
}

// The server grants the locks of its sessions in the order in which they have asked. It ends a session that has the turn,
// and with it the turn, when it has been silent for five seconds: its process was stopped or cut off.
//
// On PostgreSQL the turn belongs to a transaction, because that has a limit for being idle in all versions, and because
// nothing is left behind on the session of a pool. It is READ COMMITTED, and so has no snapshot between statements. One
// that waits has a snapshot, which keeps VACUUM from removing rows that have died since. So it waits for a
// minute. And CREATE INDEX CONCURRENTLY waits for the end of transactions with an older snapshot than its
// own. So waits are ended when it does. All is one message without arguments: a statement with arguments
// would keep its snapshot until the next one.
//
// The number is another one for each table, also if tables of several schemas have one name.
var postgresTurns = Turns{
	Begin: "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 5000;" +
		" SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 60000; SELECT pg_advisory_xact_lock(" + postgresTurn + ")",
	End:     "COMMIT",
	Session: "SELECT pg_backend_pid()",
	Yield: "WITH waiting AS (SELECT pid, locktype, database, virtualxid, virtualtransaction FROM pg_locks WHERE NOT granted)\n" +
		"SELECT COUNT(pg_cancel_backend(pid)) FROM waiting WHERE locktype = 'advisory' AND pid IN ({sessions}) AND EXISTS (\n" +
		"SELECT 1 FROM waiting AS server JOIN waiting AS session ON session.virtualtransaction = server.virtualxid AND session.locktype = 'advisory'\n" +
		"WHERE server.locktype = 'virtualxid' AND session.database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
}

const postgresTurnIsFree = "CASE WHEN COALESCE({turn}, 0) = 0 THEN TRUE ELSE pg_try_advisory_xact_lock_shared({turn}" + turnOfTable + ") END"

const (
	postgresTurn = "CAST(:turn AS BIGINT)" + turnOfTable
	turnOfTable  = " # CAST(CAST(CAST('{table}' AS regclass) AS oid) AS BIGINT)"
)

// On MySQL and MariaDB the turn belongs to the session. Its name is the server's and not the database's, and has 64
// characters at most.
var mysqlTurns = Turns{
	Begin: "SET @sqllock_wait_timeout = @@SESSION.wait_timeout, SESSION wait_timeout = 5",
	Take:  "SELECT COALESCE(GET_LOCK(" + mysqlTurn + ", 60), 0)",
	End:   "DO RELEASE_LOCK(" + mysqlTurn + ")",
	After: "SET SESSION wait_timeout = @sqllock_wait_timeout",
}

const mysqlTurnIsFree = "(:turn = 0 OR COALESCE(IS_FREE_LOCK(" + mysqlTurn + "), 0) = 1)"

const mysqlTurn = "CONCAT('sqllock ', SHA2(CONCAT(COALESCE(NULLIF('{schema}', ''), DATABASE(), ''), '.', :turn), 224))"
