// Package dialect names the databases that sqllock works with, and the layouts of the lock table.
//
// Applications pass [Postgres], [MySQL], [SQLite] or [TiDB] to sqllock.NewRepository and to package migrations. The
// packages with an Open (pgxlock, pqlock, mysqllock, sqlitelock) know theirs.
package dialect

import "errors"

// A Dialect says which database a pool leads to, whatever the driver. Dialects are compared with ==. The zero value
// names none, and is refused: call [Postgres], [MySQL], [SQLite] or [TiDB].
type Dialect struct {
	name                       string
	withoutScans, withSequence bool
}

var postgres, mysql, sqlite, tidb = Dialect{name: "postgres"}, Dialect{name: "mysql"}, Dialect{name: "sqlite"}, Dialect{name: "tidb"}

// Postgres returns the dialect of PostgreSQL 11 and later, for lib/pq and pgx.
func Postgres() Dialect { return postgres }

// MySQL returns the dialect of MySQL 8 and later and of MariaDB 10.6 and later. It works with all settings of the
// driver's clientFoundRows, parseTime, loc and interpolateParams. interpolateParams=true saves one round trip for
// each statement.
func MySQL() Dialect { return mysql }

// SQLite returns the dialect of SQLite 3.42 and later. Configure a busy_timeout and WAL mode: contenders then wait
// for each other's commits instead of failing. All transactions of SQLite are serializable, so all isolations behave
// alike.
func SQLite() Dialect { return sqlite }

// TiDB returns the dialect of TiDB. On another server it is refused, as [MySQL] is on TiDB.
//
//   - TiDB has no SERIALIZABLE: where that is asked for, as by default, acquisitions are READ COMMITTED.
//   - Guarded transactions change the row of their lease, so one at a time is under a lease.
//   - A time-to-live has 10 s at least. After a failure of the server that gives out fencing tokens no lock is acquired
//     for that long, or for a minute if that server has been without PD.
func TiDB() Dialect { return tidb }

// WithSequence returns the dialect of a MariaDB whose source of fencing tokens is a sequence. Only a repository whose
// Layout is set needs it: others ask the server. On a server whose source of tokens is a table, all acquisitions would
// fail. On Galera each node counts by itself, and tokens would not rise. Dialects other than [MySQL] stay as they are.
func (d Dialect) WithSequence() Dialect {
	d.withSequence = d.name == mysql.name
	return d
}

// WithoutScans returns the dialect of a PostgreSQL for a pool whose sessions have enable_seqscan off, such as those of
// pgxlock.Open and pqlock.Open. Statements then keep their plans, and keys that change hands often keep their rows.
// Dialects other than [Postgres] stay as they are.
func (d Dialect) WithoutScans() Dialect {
	d.withoutScans = d.name == postgres.name
	return d
}

// String returns "postgres", "mysql", "sqlite", "tidb", or "" for the zero value.
func (d Dialect) String() string { return d.name }

// DefaultPrefix is the prefix of Spring's tables, as in INT_LOCK.
const DefaultPrefix = "INT_"

// ErrPrefix is returned for a prefix that cannot begin the name of a table. A prefix consists of letters, digits and
// underscores, optionally after the name of a schema and a dot; each part has at most 40 bytes.
var ErrPrefix = errors.New("invalid table prefix")

// Channel is the channel of PostgreSQL's LISTEN and NOTIFY on which the deletion of rows is notified. All tables of
// a database share it; the payload says which row was deleted: see sqllock.Waker.
const Channel = "sqllock"
