// Package migrations creates and upgrades sqllock's tables:
//
//	err := migrations.Up(ctx, db, dialect.Postgres(), nil)
//
// The versions are
//
//	1   INT_LOCK, the lock table of Spring Integration 4.3 to 6.x
//	2   INT_LOCK_FENCE, the source of fencing tokens, and INT_LOCK_NAME, the names of keys and processes
//	3   the column EXPIRED_AFTER of INT_LOCK, as in Spring Integration 7
//	4   INT_LOCK_NAME, where version 2 was reached before it had that table
//
// A table that Spring has created is adopted, with or without EXPIRED_AFTER and with its
// rows. From version 3 on, a Spring before 7 cannot lock: its INSERT without EXPIRED_AFTER is
// refused, and its callers wait for ever. So a table without the column gets it only if
// [Options.Layout] or [Goto] asks for it.
//
// On PostgreSQL a table is found by the search path, but made in its first schema, where it would hide that of a later one. So nothing
// is changed while one of the tables, but for INT_LOCK_NAME, is in another schema than the first, unless the prefix names the schema: see
// [ErrState].
//
// The current version is stored in a table of its own, INT_LOCK_MIGRATIONS, in
// golang-migrate's format. It is written only when a step is complete, and each step can be
// repeated: a migration that was interrupted is continued by the next call. On PostgreSQL
// and SQLite each call is one transaction.
//
// All functions use one connection of the pool and return it. Any number of processes may
// call them at the same time: one migrates, and the others wait for up to a minute. If ctx
// ends, they stop and return its error; on SQLite only after the connection's busy_timeout,
// if they wait for another writer. The changes are then rolled back on PostgreSQL and
// SQLite; on MySQL the steps that were complete remain.
//
// The statements are in SQL files, in one folder for each database.
package migrations

import (
	"context"
	"database/sql"

	"github.com/sqllock/sqllock/dialect"
)

const (
	spring6 = 2 // the last version without EXPIRED_AFTER
	latest  = 4
)

// Up migrates up to the version of opts.Layout: 4, or 2 for [dialect.Spring6]. Without a Layout it makes new
// tables of version 4, and leaves a lock table without EXPIRED_AFTER at version 2, so that a Spring before 7
// that uses it goes on working. While locks are held in such a table, it does not add the column, and returns
// [ErrHeld], unless opts.Force is true. It never migrates down. If the tables are up to date, it only reads. So an
// application without the right to change the schema can call it at each start. opts may be nil.
//
// Up returns errors of the database and [ErrDialect], [ErrOption], [dialect.ErrPrefix],
// [ErrState], [ErrHeld] and [ErrBusy].
func Up(ctx context.Context, db *sql.DB, d dialect.Dialect, opts *Options) error {
	return run(ctx, db, d, opts, func(st State) uint { return max(st.Version, st.Target) })
}

// Down migrates down by one version. opts may be nil.
//
//   - From version 4 to 3 it drops the table of names.
//   - From version 3 to 2 it drops the column EXPIRED_AFTER. CREATED_DATE becomes
//     EXPIRED_AFTER - opts.TTL, so for contenders with that time-to-live each lease ends
//     when it would have ended before.
//   - From version 2 to 1 it drops the source of fencing tokens and the table of names. If Up
//     creates them again, tokens begin anew: a storage that compares them refuses the lower ones.
//   - From version 1 to 0 it drops the lock table, even if Spring created it. While locks
//     are held it returns [ErrHeld], unless opts.Force is true.
//   - At version 0 it does nothing.
//
// Down returns the errors of [Up].
func Down(ctx context.Context, db *sql.DB, d dialect.Dialect, opts *Options) error {
	return run(ctx, db, d, opts, func(st State) uint { return max(st.Version, 1) - 1 })
}

// Goto migrates up or down to a version. Version 0 drops all tables, unless locks are held,
// as [Down] does. opts.Layout is not used; opts may be nil.
//
// Goto returns the errors of Down, and [ErrVersion] for a version that does not exist.
func Goto(ctx context.Context, db *sql.DB, d dialect.Dialect, version uint, opts *Options) error {
	if version > latest {
		return unknown(version)
	}
	return run(ctx, db, d, opts, func(State) uint { return version })
}
