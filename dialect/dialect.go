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
//	                                    :shift   left - ttl, µs
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
	// a deadlock, a lock wait that ran out) and may be sent again.
	Transient
	// ReadOnly means that the server or the session does not accept writes.
	ReadOnly
	// Schema means that the table is missing or has other columns.
	Schema
)

// A Dialect describes one kind of database. The zero value is of no use; call
// [Postgres], [MySQL] or [SQLite].
type Dialect struct {
	// Name is "postgres", "mysql" or "sqlite".
	Name string

	// Numbered says that placeholders are $1, $2 … instead of question marks.
	Numbered bool

	// ReturnsOwner says that Acquire answers with a row exactly when the lock
	// was acquired. Where it does not, the caller reads the owner with Peek
	// next, in the same transaction if there is one: affected-row counts cannot
	// be trusted on MySQL.
	ReturnsOwner bool

	// Classify tells the class of an error of this database, whichever driver
	// it came through. It accepts wrapped errors and nil.
	Classify func(error) Class

	fragments fragments
}

// Statements are the texts that a repository runs, with named parameters and
// the name of the table filled in.
type Statements struct {
	// Acquire inserts the row of (region, key), or takes it over if it carries
	// the same holder already or has expired. It reads no other row.
	Acquire string
	// Peek answers CLIENT_ID, age and time left (µs) of one row.
	Peek string
	// List answers REGION, LOCK_KEY, CLIENT_ID, age and time left (µs) of all rows.
	List string
	// Held counts the rows of (region, key) that carry the holder and have not expired.
	Held string
	// Renew makes an unexpired row that carries the holder last :left from now.
	Renew string
	// Delete removes the row that carries the holder.
	Delete string
	// DeleteClient removes all rows of one client in a region.
	DeleteClient string
	// DeleteExpired removes all expired rows of a region.
	DeleteExpired string
	// Columns answers no row; its columns tell the layout.
	Columns string
	// Clock answers the database's clock: µs since 1970-01-01 UTC.
	Clock string
	// ReadOnly answers 1 if the server refuses writes, else 0.
	ReadOnly string
	// Version answers the server's own name and version.
	Version string
}

// Statements returns the texts for a layout and the name of the lock table,
// which must come from [NamesFor].
func (d Dialect) Statements(layout Layout, table string) Statements {
	f := d.fragments
	expiry, prolong := f.expiry(layout, ""), "EXPIRED_AFTER = "+f.add(f.now, ":left")
	if layout == Spring6 {
		prolong = "CREATED_DATE = " + f.add(f.now, ":shift")
	}
	fill := strings.NewReplacer(
		"{table}", table,
		"{row}", "REGION = :region AND LOCK_KEY = :key",
		"{now}", f.now,
		"{end}", f.add(f.now, ":left"),
		"{prolong}", prolong,
		"{expired}", expiry+" < "+f.now,
		"{held.expired}", f.expiry(layout, "held.")+" < "+f.now,
		"{valid}", expiry+" >= "+f.now,
		"{age}", f.elapsed("CREATED_DATE", f.now),
		"{left}", f.elapsed(f.now, expiry),
		"{client}", f.bytes("CLIENT_ID"),
		"{:client}", f.bytes(":client"),
	).Replace
	return Statements{
		Acquire: fill(f.acquire[layout]),
		Peek:    fill("SELECT COALESCE(CLIENT_ID, ''), {age}, {left} FROM {table} WHERE {row}"),
		List: fill("SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), {age}, {left} FROM {table}" +
			" ORDER BY REGION, LOCK_KEY"),
		Held:   fill("SELECT COUNT(*) FROM {table} WHERE {row} AND CLIENT_ID = :holder AND {valid}"),
		Renew:  fill("UPDATE {table} SET {prolong} WHERE {row} AND CLIENT_ID = :holder AND {valid}"),
		Delete: fill("DELETE FROM {table} WHERE {row} AND CLIENT_ID = :holder"),
		DeleteClient: fill("DELETE FROM {table} WHERE REGION = :region" +
			" AND SUBSTR({client}, 1, LENGTH(:client)) = {:client}" +
			" AND LENGTH(RTRIM(CLIENT_ID)) = LENGTH(:client) + 11"),
		DeleteExpired: fill("DELETE FROM {table} WHERE REGION = :region AND {expired}"),
		Columns:       fill("SELECT * FROM {table} WHERE 1 = 0"),
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

	acquire map[Layout]string

	readOnly string
	version  string
}

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

func (f fragments) elapsed(from, to string) string {
	return strings.NewReplacer("{from}", from, "{to}", to).Replace(f.between)
}

func (f fragments) bytes(text string) string {
	return strings.ReplaceAll(f.exact, "{text}", text)
}
