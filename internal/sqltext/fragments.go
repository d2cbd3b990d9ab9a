package sqltext

import (
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

// fragments are the expressions and texts from which statements are assembled. {…} is a
// placeholder for an operand.
type fragments struct {
	now     string // the present instant
	plus    string // {base} moved by {micros}
	between string // the microseconds from {from} to {to}
	epoch   string // the instant 1970-01-01 00:00:00
	exact   string // {text}, compared byte for byte
	cut     string // the microseconds that may be missing from a {time}, or ""
	latest  string // the function that returns the latest of its arguments

	acquire   map[dialect.Layout]string
	isolation string // the isolation in which a statement runs, in lower case, if an expression can say
	fence     string // fails if {fence} is missing, and shows what it is
	token     string // draws the next fencing token from {fence}, if an expression can
	draw      string // draws the next fencing token for a holder, if it takes a statement
	drawOne   string // draws the next fencing token without checking for a holder
	trim      string
	outcome   string // follows draw in one message: whether it drew a number, and which
	look      string // reads who holds the row, before the transaction of one message that acquires it
	number    string // follows drawOne in one message: which number it drew
	notify    string // notifies {channel} that a row of {topic} was deleted
	guard     string
	guardAll  string // guard for several rows, in the order of their keys
	// guardByWriting is guard by a change that a cluster replicates.
	guardByWriting string
	// isMember is the condition that the server is a working member of its cluster, or "".
	isMember string
	// waits stands before a SELECT that waits for what others have committed, or is "". Where no
	// statement can do that, before and after are sent around it.
	waits, before, after string
	// cluster and member read what a server says of its cluster; clusterEnd ends the statement.
	cluster, member, clusterEnd string

	items string // the items of {list}, a parameter, in parentheses
	mine  string // the condition that a row carries one of the keys and holders
	// anew follows a condition, and has the server plan the statement for each execution.
	anew string
	// ofRegion is the condition on REGION of some look-ups of a row, and newest ends those that find the newest version first.
	ofRegion, newest string
	// peekAll and heldAll are "" where a condition with items, or mine, will do.
	peekAll, heldAll string

	byKey string // follows the name of a table that must be read by its primary key

	acquireAll, acquireRow map[dialect.Layout]string

	take, takeAll, park, parkAll string // "" where rows are not parked

	pick, pickAll, pickAny     string
	renewAll, deleteAll        string
	pickExpired, deleteExpired string
	pickClient, deleteClient   string

	lockTimeout lockTimeout
	joins       bool // an UPDATE names other tables before SET, not in FROM
	turns       Turns
	turnIsFree  string // the condition that no session has {turn}, or that this is 0 or NULL: see InOrder
	naming      naming

	pin      string // which transaction has the row locked
	readOnly string
	version  string
	file     string
	session  string // what is wrong with the encoding of the session's text, or ''
	tables   string // what the catalog says of the tables
}

// ofRow is the condition that a statement for one row begins with.
const ofRow = "WHERE {row} AND CLIENT_ID = :holder"

// lockTimeout limits how long a statement waits for a row that another transaction has
// locked. Depending on the statement, the limit stands in one of four places. inDelete,
// which only releases use, also keeps the commit from waiting for the disk.
type lockTimeout struct{ before, inSelect, inUpdate, inDelete string }

// fourColumns is a row with a column EXPIRED_AFTER, which fourAlone names: in a statement over a lock
// table that has this column, too, the name is ambiguous, and the server refuses the statement. So a
// process that goes by CREATED_DATE alone renews no lease, and deletes no row, in a table that has got the
// column since it was opened, where others go by that. A renewal that comes before the change is safe, for
// the migration grants each row a whole time-to-live.
//
// On MySQL the statements that pick rows name it, for those that change them: in a join these would wait for rows
// that do not meet the conditions. The table keeps its columns until the transaction ends.
//
// On PostgreSQL and SQLite an acquisition fails without it: the column is NOT NULL, and is in one
// transaction. MySQL adds it without values at first, and gives it one of its own where sql_mode is not strict.
const (
	fourColumns = "(SELECT NULL AS EXPIRED_AFTER) AS four_columns"
	fourAlone   = " AND EXPIRED_AFTER IS NULL"
)

// expiry returns the instant at which the lease of a row ends. qualifier, if not empty,
// distinguishes the row of the table from a proposed row.
func (f fragments) expiry(layout dialect.Layout, qualifier string) string {
	if layout == dialect.Spring6 {
		return f.add(qualifier+"CREATED_DATE", ":ttl")
	}
	return qualifier + "EXPIRED_AFTER"
}

// judged returns the instant by which a row is judged: the present one, but for what its
// writer has cut from its times.
func (f fragments) judged(layout dialect.Layout, qualifier string) string {
	if f.cut == "" {
		return f.now
	}
	column := "EXPIRED_AFTER"
	if layout == dialect.Spring6 {
		column = "CREATED_DATE"
	}
	return f.add(f.now, "-"+strings.ReplaceAll(f.cut, "{time}", qualifier+column))
}

func (f fragments) add(base, micros string) string {
	return strings.NewReplacer("{base}", base, "{micros}", micros).Replace(f.plus)
}

// later returns the later one of two instants.
func (f fragments) later(one, other string) string {
	return f.latest + "(" + one + ", " + other + ")"
}

func (f fragments) elapsed(from, to string) string {
	return strings.NewReplacer("{from}", from, "{to}", to).Replace(f.between)
}

func (f fragments) list(parameter string) string {
	return strings.ReplaceAll(f.items, "{list}", parameter)
}

func (f fragments) bytes(text string) string {
	return strings.ReplaceAll(f.exact, "{text}", text)
}
