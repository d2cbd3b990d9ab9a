package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// A State is the state of the tables of one prefix.
type State struct {
	// Version is the current version, or 0.
	Version uint
	// Target is the version to which Up migrates with the same options.
	Target uint
	// Latest is the latest version that this package knows.
	Latest uint
	// Dirty is true if the bookkeeping table records an incomplete step. This package
	// never writes that; see [ErrState].
	Dirty bool
	// Table and Bookkeeping are the names of the lock table and of the bookkeeping
	// table, which stores the version.
	Table, Bookkeeping string
	// Layout is the layout of the lock table, or 0 if there is no such table.
	Layout dialect.Layout
	// Nullable is true if EXPIRED_AFTER may be NULL, which Up repairs.
	Nullable bool
	// Apart says, on PostgreSQL and SQLite, which of the tables, but for that of names, is not where new ones would be made,
	// and what to do about it. Nothing is changed then: see [ErrState]. It is "" if the prefix names the schema.
	Apart string
	// Interrupted is true if migrating down from version 3 was interrupted on MySQL: the column has its interim name.
	Interrupted bool
}

// Status returns the current state. It writes nothing, and does not wait for a migration
// that is running. A lock table that Spring has created and that is not adopted yet has
// version 0 and a Layout. opts may be nil.
//
// Status returns errors of the database and [ErrDialect], [ErrOption] and
// [dialect.ErrPrefix].
func Status(ctx context.Context, db *sql.DB, d dialect.Dialect, opts *Options) (st State, err error) {
	s, err := open(ctx, db, d, opts)
	if err != nil {
		return State{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if st, err = s.state(ctx); err != nil {
		return State{}, fmt.Errorf("status of %v: %w", s.lock, err)
	}
	return st, nil
}

func (s *session) state(ctx context.Context) (State, error) {
	st := State{Latest: latest, Table: s.lock.String(), Bookkeeping: s.bookkeeping.String()}
	columns, err := s.columns(ctx, s.lock)
	if err != nil {
		return State{}, err
	}
	st.Layout, st.Nullable = layoutOf(columns), slices.ContainsFunc(columns, column.isEndless)
	st.Interrupted = has(columns, leaseEnd)
	if st.Version, st.Dirty, err = s.version(ctx); err != nil {
		return State{}, err
	}
	st.Target = s.target(st.Layout)
	st.Apart, err = s.apart(ctx)
	return st, err
}

// apart returns State.Apart. The names in statements are found by the search path, as an application finds them, but
// new tables are made in its first schema, where they would hide those of another one.
func (s *session) apart(ctx context.Context) (string, error) {
	if s.flavour.apart == "" || s.lock.schema != "" {
		return "", nil
	}
	var name, found, made string
	err := s.conn.QueryRowContext(ctx, s.lock.fill(s.flavour.apart)).Scan(&name, &found, &made)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the schemas of the tables: %w", err)
	case strings.HasPrefix(found, "pg_temp_"), s.dialect.Embedded && found == "temp":
		return name + " is temporary: drop it, or name the schema of the lasting tables in the prefix", nil
	}
	text := fmt.Sprintf("%s is in the schema %s, and new tables would be made in %s: name the one that is meant in the prefix, %[2]s.%[4]s or %[3]s.%[4]s",
		name, found, made, s.lock.unqualified)
	if strings.EqualFold(name, s.lock.String()+"_FENCE") {
		text += "; if programs have drawn tokens from it, a new one must begin above them"
	}
	return text, nil
}

// target returns the version to which Up migrates a table of a layout.
func (s *session) target(layout dialect.Layout) uint {
	switch {
	case s.asked == dialect.Spring6, s.asked == 0 && layout == dialect.Spring6 && !s.begun:
		return spring6
	default:
		return latest
	}
}

func layoutOf(columns []column) dialect.Layout {
	switch {
	case len(columns) == 0:
		return 0
	case has(columns, expiredAfter):
		return dialect.Spring7
	default:
		return dialect.Spring6
	}
}

// begin returns the version after which the steps to the target begin.
func (st State) begin(target uint) uint {
	if st.Nullable && target > spring6 && target >= st.Version {
		return min(st.Version, spring6)
	}
	return st.Version
}

func (s *session) version(ctx context.Context) (version uint, dirty bool, err error) {
	s.begun = false
	columns, err := s.columns(ctx, s.bookkeeping)
	if err != nil || len(columns) == 0 {
		return 0, false, err
	}
	var number int64 // -1 for none: see migrate; golang-migrate's own drivers write it, too
	query := s.bookkeeping.fill("SELECT version, dirty FROM {table}")
	err = s.conn.QueryRowContext(ctx, query).Scan(&number, &dirty)
	if err != nil && !errors.Is(err, sql.ErrNoRows) && !s.dropped(ctx, err) {
		return 0, false, fmt.Errorf("read %v: %w", s.bookkeeping, err)
	}
	s.begun = number < 0
	return uint(max(number, 0)), dirty, nil
}

// dropped reports whether cause is due to another process that has dropped the bookkeeping
// table since its columns were read.
func (s *session) dropped(ctx context.Context, cause error) bool {
	if s.dialect.Classify(cause) != sqltext.Schema {
		return false
	}
	columns, err := s.columns(ctx, s.bookkeeping)
	return err == nil && len(columns) == 0
}

// A column is one of a table's.
type column struct {
	name      string
	mayBeNull bool
}

const (
	expiredAfter = "EXPIRED_AFTER"
	leaseEnd     = "LEASE_END" // its interim name in mysql/000003_expired_after.down.sql
)

func (c column) isEndless() bool { return c.mayBeNull && strings.EqualFold(c.name, expiredAfter) }

// columns returns a table's columns, or none if there is no such table. It
// reads the catalog, because on PostgreSQL a statement on a missing table would abort the
// transaction.
func (s *session) columns(ctx context.Context, t table) (_ []column, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read columns of %v: %w", t, err)
		}
	}()
	rows, err := s.conn.QueryContext(ctx, t.fill(s.flavour.columns))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var columns []column
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.name, &c.mayBeNull); err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	if err := rows.Err(); err != nil || len(columns) > 0 || s.flavour.probe == "" {
		return columns, err
	}
	_, err = s.conn.ExecContext(ctx, t.fill(s.flavour.probe))
	if s.dialect.Classify(err) == sqltext.Schema {
		err = nil // there is none
	}
	return nil, err
}

func has(columns []column, name string) bool {
	return slices.ContainsFunc(columns, func(c column) bool { return strings.EqualFold(c.name, name) })
}

// sound returns ErrState if the state cannot be migrated to the target.
func (st State) sound(target uint) error {
	err := st.consistent(target)
	if st.Apart != "" && (err != nil || st.begin(target) != target) {
		return fmt.Errorf("%w: %s", ErrState, st.Apart) // rather than what tables of two schemas contradict
	}
	return err
}

// consistent returns ErrState if the bookkeeping table contradicts the lock table.
func (st State) consistent(target uint) error {
	switch {
	case st.Dirty:
		return fmt.Errorf("%w: %s records that version %d is incomplete, which sqllock never writes; "+
			"every step can be repeated, so drop %[2]s and migrate up again", ErrState, st.Bookkeeping, st.Version)
	case st.Version > st.Latest:
		return fmt.Errorf("%w: %s has version %d, but this version of sqllock knows only %d: use the newer version that has migrated",
			ErrState, st.Bookkeeping, st.Version, st.Latest)
	case st.Version > 0 && st.Layout == 0 && (st.Version > 1 || target > 0): // else removing it was interrupted
		return fmt.Errorf("%w: %s has version %d, but there is no table %s: drop %[2]s and migrate up again",
			ErrState, st.Bookkeeping, st.Version, st.Table)
	case st.Version > spring6 && target > spring6 && st.Layout == dialect.Spring6:
		return fmt.Errorf("%w: %s has version %d, but %s has no column EXPIRED_AFTER: it was dropped, or migrating down was interrupted; go to version %d, then to %d",
			ErrState, st.Bookkeeping, st.Version, st.Table, spring6, latest)
	}
	return nil
}
