// Package migrations creates and changes sqllock's tables. The statements are
// the SQL files beside this one, a folder per database; golang-migrate orders
// them and this package runs them.
//
//	version 1   the lock table of Spring Integration 4.3 to 6.x: INT_LOCK
//	version 2   where fencing tokens are drawn from: INT_LOCK_FENCE
//	version 3   the column EXPIRED_AFTER: the lock table of Spring Integration 7
//
// A table that Spring created, with or without EXPIRED_AFTER and with rows in
// it, is adopted: [Up] adds what is missing and keeps the rest.
//
// The version that has been reached stands in a table of the prefix's own,
// INT_LOCK_MIGRATIONS, in golang-migrate's format. It is written only when a
// step is complete, and each step may be repeated, so that one that was cut
// short is simply run again: nothing is ever left dirty. On PostgreSQL and
// SQLite a call is one transaction, which happens wholly or not at all.
//
// All functions work on one connection of the pool and give it back. They may
// be called by any number of processes at the same time: one migrates, the
// others wait, for a minute at most. When ctx ends they stop and return its error
// (on SQLite only after the connection's busy_timeout, if that is what they wait
// for); the change is then undone on PostgreSQL and SQLite, and stands at the
// last complete step on MySQL.
package migrations

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/sqllock/sqllock/dialect"
)

const (
	spring6 = 2 // the last version without EXPIRED_AFTER
	latest  = 3
)

// Up migrates to the version of opts.Layout: 3, or 2 for [dialect.Spring6]. It
// never goes down. If there is nothing to do it only reads, so that an
// application without rights to change the schema may call it at each start.
//
// Errors, besides the database's own: [ErrDialect], [ErrOption],
// [dialect.ErrPrefix], [ErrState], [ErrBusy].
func Up(ctx context.Context, db *sql.DB, d dialect.Dialect, opts *Options) error {
	return run(ctx, db, d, opts, func(s *session, version uint) uint {
		return max(version, s.target)
	})
}

// Down undoes one step; at version 0 it does nothing. From version 1 it drops
// the lock table, unless locks are held in it ([ErrHeld]; see Options.Force),
// even if Spring created it.
//
// Going from 3 to 2 takes EXPIRED_AFTER away: CREATED_DATE becomes EXPIRED_AFTER
// less opts.TTL, so that users of the four-column table with that time-to-live
// see each lease end when it would have ended.
//
// Errors are those of [Up] and ErrHeld.
func Down(ctx context.Context, db *sql.DB, d dialect.Dialect, opts *Options) error {
	return run(ctx, db, d, opts, func(_ *session, version uint) uint {
		return max(version, 1) - 1
	})
}

// Goto migrates up or down to a version, whatever opts.Layout. Version 0 leaves
// nothing behind; it is refused while locks are held, as for [Down].
//
// Errors are those of Down, and [ErrVersion] for a version that there is not.
func Goto(ctx context.Context, db *sql.DB, d dialect.Dialect, version uint, opts *Options) error {
	if version > latest {
		return fmt.Errorf("%w %d: the last is %d", ErrVersion, version, latest)
	}
	return run(ctx, db, d, opts, func(*session, uint) uint { return version })
}
