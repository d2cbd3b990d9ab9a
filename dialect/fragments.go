package dialect

import "strings"

// fragments are the expressions and texts from which statements are assembled. {…} is a
// placeholder for an operand.
type fragments struct {
	now     string // the present instant
	plus    string // {base} moved by {micros}
	between string // the microseconds from {from} to {to}
	epoch   string // the instant 1970-01-01 00:00:00
	exact   string // {text}, compared byte for byte
	latest  string // the function that returns the latest of its arguments

	acquire   map[Layout]string
	isolation string // the isolation in which a statement runs, in lower case, if an expression can say
	fence     string // fails if {fence} is missing, and shows what it is
	token     string // draws the next fencing token from {fence}, if an expression can
	draw      string // draws the next fencing token for a holder, if it takes a statement
	drawOne   string // draws the next fencing token without checking for a holder
	trim      string
	outcome   string // follows draw in one message: whether it drew a number, and which
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
	// peekAll and heldAll are "" where a condition with items, or mine, will do.
	peekAll, heldAll string

	byKey string // follows the name of a table that must be read by its primary key

	acquireAll, acquireRow map[Layout]string

	pick, pickAll, pickAny     string
	renewAll, deleteAll        string
	pickExpired, deleteExpired string
	pickClient, deleteClient   string

	lockTimeout lockTimeout
	turns       Turns
	naming      naming

	readOnly string
	version  string
	file     string
	// described are what [Statements.Columns] returns beside the version: of {table} AS held, in order.
	described string
}

// ofRow is the condition that a statement for one row begins with.
const ofRow = "WHERE {row} AND CLIENT_ID = :holder"

// lockTimeout limits how long a statement waits for a row that another transaction has
// locked. Depending on the statement, the limit stands in one of four places. inDelete,
// which only releases use, also keeps the commit from waiting for the disk.
type lockTimeout struct{ before, inSelect, inUpdate, inDelete string }

// expiry returns the instant at which the lease of a row ends. qualifier, if not empty,
// distinguishes the row of the table from a proposed row.
func (f fragments) expiry(layout Layout, qualifier string) string {
	if layout == Spring6 {
		return f.add(qualifier+"CREATED_DATE", ":ttl")
	}
	return qualifier + "EXPIRED_AFTER"
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
