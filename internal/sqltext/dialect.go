// Package sqltext describes the differences between databases: the text of each
// statement and the classes of their errors. It is data only: it imports no driver
// and runs no statement.
//
// A [Dialect] consists of a few SQL fragments ("now", "an instant plus a number of
// microseconds"). [Dialect.Statements] assembles the statements from them. Each
// statement is written once for all databases, unless they really differ.
//
// Applications name a database by a value of package dialect. [Of] returns its [Dialect]. README.md beside this file lists the steps
// to support another database.
//
// # Parameters
//
// Statements have named parameters:
//
//	:region   the region
//	:key      a LOCK_KEY
//	:keys     several LOCK_KEYs
//	:holder   the CLIENT_ID of one acquisition
//	:holders  the CLIENT_ID that belongs to each of :keys
//	:next     the CLIENT_ID that replaces the holder's
//	:client   the part of CLIENT_ID that all acquisitions of a client share
//	:rows     several rows
//	:count    how many rows
//	:ttl      the time-to-live, in µs
//	:left     the time from now to the end of the lease, in µs
//	:shift    :left - :ttl, in µs
//	:token    a fencing token
//	:turn     the number of a key among those that sessions queue for
//	:limit    how many rows to return, or to change, at most
//	:bell     the name of a lock of the server: who waits for it is woken
//
// # Time
//
// All instants are read from the database's clock while the statement runs, in UTC and
// without a time zone. Only durations in microseconds are exchanged between the
// database and Go. So clocks are never compared with each other, and neither the
// driver's parsing of dates nor the time zone of the session can shift a lease.
package sqltext

import (
	"errors"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

// A Class is what an error of a database means for a lock.
type Class int

const (
	// Unknown is any error without a special meaning.
	Unknown Class = iota
	// Transient means that the statement lost a race (a serialization failure, a
	// deadlock, a busy SQLite). It has changed nothing and can be retried.
	Transient
	// ReadOnly means that the server or the session does not accept writes.
	ReadOnly
	// Schema means that the table is missing or lacks a column.
	Schema
	// Blocked means that the statement timed out while it waited for a row that another transaction has
	// locked, or that the server has ended it: for its time limit (statement_timeout, max_statement_time), which
	// then was most likely shorter than that wait, or because an administrator has called pg_cancel_backend or
	// KILL QUERY. It has changed nothing. PostgreSQL gives a statement whose client's context has ended, which
	// the caller knows, the same code.
	Blocked
	// NoKey means that the table has no unique key of LOCK_KEY and REGION, as a view has none.
	NoKey
	// OtherLayout is Schema: the table has a column EXPIRED_AFTER and the statement is not for that [dialect.Layout], or
	// the other way round.
	OtherLayout
	// Refused means that the server has refused the statement for what stands in one of its rows: a
	// constraint, a policy, a trigger, or text that the column cannot hold. It has changed nothing.
	Refused
	// Repeated is Refused, because two keys of the statement are one for the collation of LOCK_KEY.
	Repeated
	// TooLarge means that the server, or the driver, takes no message of this size. It has not been read, and the
	// server may have closed the connection.
	TooLarge
	// Stuck means that the connection is still inside a transaction: the server has refused to
	// end it, or another user of the pool has left it open. It must be closed.
	Stuck
	// Exhausted means that the server has no memory for another lock. The statement has changed nothing.
	Exhausted
	// Closed means that the connection was closed, by the server or on the way to it. The statement
	// may have been applied. It can be sent again on another connection if that does no harm.
	Closed
	// OldPlan is Transient, because the table has changed since the statement was prepared. A pooler that keeps the
	// prepared statement may answer so for as long as it lives.
	OldPlan
)

// ErrNotCommitted is of class [Stuck].
var ErrNotCommitted = errors.New("the application has left a transaction open on a connection of the pool")

// A Dialect describes one kind of database. The zero value cannot be used; call
// [Of], [Postgres], [MySQL], [SQLite] or [TiDB].
type Dialect struct {
	// Name is "postgres", "mysql" or "sqlite".
	Name string

	// Engine is "TiDB", the only engine that the dialect is for, or "".
	Engine string

	// If LacksSerializable is true, READ COMMITTED stands in for SERIALIZABLE.
	LacksSerializable bool

	// LeastTTL is the shortest time-to-live that leases may have, if the database needs one.
	LeastTTL time.Duration

	// If Numbered is true, placeholders are $1, $2 …; otherwise question marks.
	Numbered bool

	// If Returning is true, Acquire returns a row exactly if the lock was acquired,
	// and RenewAll and DeleteAll return each row that they have changed. If neither it nor
	// ReturnsHolder is true, the caller must read who owns the row afterwards, in the same
	// transaction if there is one: counts of affected rows are not reliable either (MySQL).
	Returning bool

	// If ReturnsHolder is true, Acquire and AcquireAll return each row as it is then, whoever
	// holds it, with the fencing token if it carries the claim's holder: see [Dialect.WithSequence].
	ReturnsHolder bool

	// If JSONLists is true, :keys and :holders are JSON arrays, one text each.
	// Otherwise there is a placeholder for each item.
	JSONLists bool

	// If Embedded is true, the database runs in this process, so a transaction costs
	// no round trips.
	Embedded bool

	// If LocksLatest is true, the statement that guards a transaction reads what was
	// committed last, however old the transaction's snapshot is.
	LocksLatest bool

	// If PicksOrFails is true, the database cannot skip locked rows: Pick and PickAny fail with an error of class
	// [Blocked] instead, and PickClient and PickExpired lock no rows, which PickAny must do.
	PicksOrFails bool

	// If Notifies is true, the statements that delete rows can notify the processes
	// that listen: see [Names.Channel].
	Notifies bool

	// If WarnsUnreplicated is true, the server answers a COMMIT whose wait for a synchronous
	// standby was cancelled with success, and a warning.
	WarnsUnreplicated bool

	// Classify returns the class of an error of this database, for every driver. It
	// accepts wrapped errors and nil.
	Classify func(error) Class

	// Outside is a statement that changes nothing, and fails with an error of class Stuck inside a
	// transaction that was begun on the session and left open, or that ends such a transaction. It is empty if there
	// is none.
	Outside string

	// IsOver reports whether the transaction is over although COMMIT or ROLLBACK returned
	// an error. If it is not, the connection must be closed.
	IsOver func(error) bool

	fragments fragments
}

// Of returns what a dialect stands for. If that names no database, it has no Name.
func Of(d dialect.Dialect) Dialect {
	switch d {
	case dialect.Postgres():
		return Postgres()
	case dialect.Postgres().WithoutScans():
		return Postgres().WithoutScans()
	case dialect.MySQL():
		return MySQL()
	case dialect.MySQL().WithSequence():
		return MySQL().WithSequence()
	case dialect.SQLite():
		return SQLite()
	case dialect.TiDB():
		return TiDB()
	default:
		return Dialect{}
	}
}
