// Package dialect holds what differs between databases: the text of each
// statement and the classes of their errors, as data. It knows no driver and
// runs nothing.
//
// A [Dialect] is a value made of a few SQL fragments ("now", "this time plus so
// many microseconds"); [Dialect.Statements] puts them into the statements, each
// of which is written once for all databases unless the databases really
// differ.
//
// Statements carry named parameters:
//
//	:region  the region                 :key     the LOCK_KEY
//	:holder  the CLIENT_ID of one       :client  the part of CLIENT_ID that all
//	         acquisition                         acquisitions of a client share
//	:ttl     time-to-live, µs           :left    time the row is to last from now, µs
//	:keys    many LOCK_KEYs             :shift   left - ttl, µs
//	:rows    many rows
//	:holders the CLIENT_ID of each      :token   a fencing token
//	         of them                    :next    the CLIENT_ID that a row is left to
//
// Every instant is the database's own clock in UTC, without a time zone, and is
// read while the statement runs. No instant travels between the database and
// Go, only durations in microseconds: clocks are never compared, and no
// driver's parsing of dates nor the session's time zone can shift a lease.
package dialect

import "strings"

// A Layout says which columns the lock table has.
type Layout int

const (
	// Spring7 is the table of Spring Integration 7: EXPIRED_AFTER says when a
	// row's lease ends. It is what migration 3 leaves behind.
	Spring7 Layout = iota + 1
	// Spring6 is the table of Spring Integration 4.3 to 6.x. It has no
	// EXPIRED_AFTER: each contender adds its own time-to-live to CREATED_DATE,
	// so all of them must be configured alike.
	Spring6
)

// String returns the name that the command line uses for the layout.
func (l Layout) String() string {
	switch l {
	case Spring7:
		return "spring7"
	case Spring6:
		return "spring6"
	default:
		return "unknown"
	}
}

// A Class says what an error means for a lock.
type Class int

const (
	// Unknown is any error without a meaning of its own: trouble.
	Unknown Class = iota
	// Transient means that the statement lost a race (a serialization failure,
	// a deadlock) and may be sent again.
	Transient
	// ReadOnly means that the server or the session does not accept writes.
	ReadOnly
	// Schema means that the table is missing or has other columns.
	Schema
	// Blocked means that the statement gave up waiting for a row that another
	// transaction has pinned or is changing.
	Blocked
)

// A Dialect describes one kind of database. The zero value is of no use; call
// [Postgres], [MySQL] or [SQLite].
type Dialect struct {
	// Name is "postgres", "mysql" or "sqlite".
	Name string

	// Numbered says that placeholders are $1, $2 … instead of question marks.
	Numbered bool

	// Returning says that Acquire answers a row exactly when the lock was
	// acquired, and RenewAll the CLIENT_ID of each row that it renewed. Where it
	// does not, counts of affected rows cannot be trusted either (MySQL), and
	// the caller asks who owns the row, in the same transaction if there is one.
	Returning bool

	// JSONLists says that :keys and :holders are JSON arrays, one text each.
	// Otherwise there is a placeholder for each item.
	JSONLists bool

	// Embedded says that the database runs in this process, so that a
	// transaction costs no round trips.
	Embedded bool

	// Notifies says that whoever listens can be told that rows were removed: see
	// [Names.Channel].
	Notifies bool

	// Classify tells the class of an error of this database, whichever driver
	// it came through. It accepts wrapped errors and nil.
	Classify func(error) Class

	fragments fragments
}

// Statements are the texts that a repository runs, with named parameters and
// the names of the tables filled in. Those that remove rows tell so on
// [Names.Channel].
type Statements struct {
	// Acquire inserts the row of (region, key), or takes it over if it carries
	// the same holder already or has expired. It reads no other row. If the
	// database is Returning and Draw is "", the row that it answers has the
	// fencing token.
	Acquire string
	// AcquireAll is Acquire for many rows of different keys: it answers LOCK_KEY and
	// fencing token of each that was acquired, if the database is Returning. The rows are a JSON array
	// of {k, h, l}: LOCK_KEY, CLIENT_ID and :left; or, where there is an AcquireRow,
	// as many of these instead of :rows.
	AcquireAll, AcquireRow string
	// PeekAll answers what List does, of the rows out of (keys).
	PeekAll string
	// DrawOne gives the next fencing token as the last inserted id.
	DrawOne string
	// Draw gives the next fencing token as the last inserted id, if the row
	// carries the holder; else it affects no row.
	Draw string
	// Trim removes what Draw left behind below :token.
	Trim string
	// Peek answers CLIENT_ID, age and time left (µs) of one row.
	Peek string
	// List answers REGION, LOCK_KEY, CLIENT_ID, age and time left (µs) of all rows.
	List string
	// Held counts the rows of (region, key) that carry the holder and have not expired.
	Held string
	// Renew makes an unexpired row that carries the holder last :left from now, unless it
	// lasts longer already.
	Renew string
	// Guard answers a row if that of (region, key) carries the holder and has
	// not expired, and pins it until the transaction ends: it can be neither
	// changed nor removed by others.
	Guard string
	// Pick answers LOCK_KEY and CLIENT_ID of rows that have not expired, and locks
	// them: those that carry one of (keys) and one of (holders), so the caller leaves
	// out those whose key and holder do not belong together. Pinned rows are left out.
	// It is "" where RenewAll does that by itself.
	Pick string
	// RenewAll is Renew for many rows; pinned ones are left as they are. If the
	// database is Returning it answers LOCK_KEY and CLIENT_ID of each; else it must be
	// given rows that Pick has answered.
	RenewAll string
	// HeldAll answers LOCK_KEY and CLIENT_ID of rows that have not expired: at least
	// those that are asked for, and otherwise those that Pick might answer.
	HeldAll string
	// Leave makes the row that carries the holder last :left from now, under
	// another name: nothing that the holder has sent will find it any more.
	Leave string
	// Delete removes the row that carries the holder.
	Delete string
	// DeleteAll removes many rows, and answers LOCK_KEY and CLIENT_ID of each if the
	// database is Returning. Pinned ones are left out; else it must be given rows that
	// Pick has answered.
	DeleteAll string
	// PickClient answers the LOCK_KEYs of some rows of one client in a region, and locks
	// them. Pinned ones are left out. It is "" where DeleteClient does that by itself.
	PickClient string
	// DeleteClient removes the rows of one client in a region, or if there is a
	// PickClient those of them in (keys). Pinned ones are left out.
	DeleteClient string
	// CountClient counts the rows of one client in a region.
	CountClient string
	// PickExpired answers the LOCK_KEYs of some expired rows of a region, and
	// locks them. Pinned ones are left out. It is "" where DeleteExpired does
	// that by itself.
	PickExpired string
	// DeleteExpired removes the expired rows of a region, or if there is a
	// PickExpired those of them in (keys).
	DeleteExpired string
	// Columns answers one row: first what Version answers, then the columns of the
	// table, which tell the layout. These are NULL.
	Columns string
	// Fence answers no row, if there is what tokens are drawn from.
	Fence string
	// Clock answers the database's clock: µs since 1970-01-01 UTC.
	Clock string
	// ReadOnly answers 1 if the server refuses writes, else 0.
	ReadOnly string
	// Version answers the server's own name and version.
	Version string
}

// Statements returns the texts for a layout and the names that belong to a
// prefix. With an empty name of the fence, no fencing token is drawn.
func (d Dialect) Statements(layout Layout, names Names) Statements {
	f := d.fragments
	acquire, draw, trim, fence := f.acquire[layout], f.draw, f.trim, "SELECT * FROM {fence} WHERE 1 = 0"
	drawOne := f.drawOne
	token := f.token
	if names.Fence == "" {
		draw, drawOne, trim, fence, token = "", "", "", "", "0"
	}
	tell, gone := "", "CLIENT_ID"
	if names.Channel != "" && f.tell != "" {
		tell = strings.NewReplacer("{channel}", names.Channel, "{topic}", names.table()).Replace(f.tell)
		tell, gone = " RETURNING "+tell, "CASE WHEN "+tell+" IS NOT NULL THEN CLIENT_ID END"
	}
	expiry, end := f.expiry(layout, ""), f.add(f.now, ":left")
	last := "EXPIRED_AFTER = " + end
	// A renewal that arrives late does not shorten what a later one has given.
	prolong := "EXPIRED_AFTER = " + f.later("EXPIRED_AFTER", end)
	if layout == Spring6 {
		last = "CREATED_DATE = " + f.add(f.now, ":shift")
		prolong = last
	}
	fill := strings.NewReplacer(
		"{table}", names.Lock,
		"{table by key}", names.Lock+f.byKey,
		"{fence}", names.Fence,
		"{token}", strings.ReplaceAll(token, "{fence}", names.Fence),
		"{row}", "REGION = :region AND LOCK_KEY = :key",
		"{mine}", "REGION = :region AND "+f.mine,
		"{now}", f.now,
		"{end}", end,
		"{last}", last,
		"{prolong}", prolong,
		"{expired}", expiry+" < "+f.now,
		"{held.expired}", f.expiry(layout, "held.")+" < "+f.now,
		"{valid}", expiry+" >= "+f.now,
		"{age}", f.elapsed("CREATED_DATE", f.now),
		"{left}", f.elapsed(f.now, expiry),
		"{of client}", "REGION = :region AND SUBSTR("+f.bytes("CLIENT_ID")+", 1, LENGTH(:client)) = "+f.bytes(":client")+
			" AND LENGTH(RTRIM(CLIENT_ID)) = LENGTH(:client) + 11",
		"{tell}", tell,
		"{gone}", gone,
		"{patient}", f.patience.before,
		"{patient.select}", f.patience.inSelect,
		"{patient.update}", f.patience.inUpdate,
		"{patient.delete}", f.patience.inDelete,
	).Replace
	return Statements{
		Acquire:    fill(acquire),
		AcquireAll: fill(f.acquireAll[layout]),
		AcquireRow: fill(f.acquireRow[layout]),
		PeekAll: fill("SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), {age}, {left} FROM {table}" +
			" WHERE REGION = :region AND LOCK_KEY IN " + f.list(":keys")),
		DrawOne: fill(drawOne),
		Draw:    fill(draw),
		Trim:    fill(trim),
		Peek:    fill("SELECT COALESCE(CLIENT_ID, ''), {age}, {left} FROM {table} WHERE {row}"),
		List: fill("SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), {age}, {left} FROM {table}" +
			" ORDER BY REGION, LOCK_KEY"),
		Held:     fill("SELECT COUNT(*) FROM {table} WHERE {row} AND CLIENT_ID = :holder AND {valid}"),
		Renew:    fill("{patient}UPDATE {table} SET {prolong}{patient.update} WHERE {row} AND CLIENT_ID = :holder AND {valid}"),
		Guard:    fill(f.guard),
		Pick:     fill(f.pick),
		RenewAll: fill(f.renewAll),
		HeldAll:  fill("SELECT LOCK_KEY, CLIENT_ID FROM {table by key} WHERE {mine} AND {valid}"),
		Leave: fill("{patient}UPDATE {table} SET CLIENT_ID = :next, {last}{patient.update}" +
			" WHERE {row} AND CLIENT_ID = :holder AND {valid}"),
		Delete:        fill("{patient}DELETE FROM {table}{patient.delete} WHERE {row} AND CLIENT_ID = :holder{tell}"),
		DeleteAll:     fill(f.deleteAll),
		PickClient:    fill(f.pickClient),
		DeleteClient:  fill(f.deleteClient + "{tell}"),
		CountClient:   fill("SELECT COUNT(*) FROM {table} WHERE {of client}"),
		PickExpired:   fill(f.pickExpired),
		DeleteExpired: fill(f.deleteExpired + "{tell}"),
		Columns:       fill("SELECT server.version, held.* FROM (" + f.version + " AS version) AS server LEFT JOIN {table} AS held ON 1 = 0"),
		Fence:         fill(fence),
		Clock:         "SELECT " + f.elapsed(f.epoch, f.now),
		ReadOnly:      f.readOnly,
		Version:       f.version,
	}
}

// fragments are the expressions from which statements are made. {…} names an
// operand.
type fragments struct {
	now     string // the present instant
	plus    string // {base} moved by {micros}
	between string // microseconds from {from} to {to}
	epoch   string // the instant 1970-01-01 00:00:00
	exact   string // {text}, so that it compares byte for byte
	latest  string // the function that returns the latest of its arguments

	acquire map[Layout]string
	token   string // the next fencing token from {fence}, where an expression can be one
	draw    string // the next fencing token, where it takes a statement
	drawOne string // the same, whoever asks
	trim    string
	tell    string // tells {channel} that a row of {topic} was removed
	guard   string
	items   string // the items of {list}, a parameter, in parentheses
	mine    string // whether a row carries a key and a holder that are asked for

	byKey string // behind the name of a table that is to be read by its primary key

	acquireAll, acquireRow map[Layout]string

	pick, renewAll, deleteAll  string
	pickExpired, deleteExpired string
	pickClient, deleteClient   string

	patience patience

	readOnly string
	version  string
}

// patience is what limits how long a statement waits: for a row that somebody has
// pinned, and inDelete, which releases have, for the disk. It is put in four places.
type patience struct{ before, inSelect, inUpdate, inDelete string }

// expiry is the instant at which the lease of a row ends. qualifier, if any,
// tells the row of the table from a proposed one.
func (f fragments) expiry(layout Layout, qualifier string) string {
	if layout == Spring6 {
		return f.add(qualifier+"CREATED_DATE", ":ttl")
	}
	return qualifier + "EXPIRED_AFTER"
}

func (f fragments) add(base, micros string) string {
	return strings.NewReplacer("{base}", base, "{micros}", micros).Replace(f.plus)
}

// later is the later one of two instants.
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
