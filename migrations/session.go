package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// A session is the connection that one call uses.
type session struct {
	settings
	conn   *sql.Conn
	script *script // what takes the statements instead of conn, or nil
	// begun is true if the last state that was read is that of tables which Up was making when it
	// was interrupted.
	begun bool
}

func open(ctx context.Context, db *sql.DB, d dialect.Dialect, opts *Options) (*session, error) {
	s, err := newSettings(d, opts)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, fmt.Errorf("%w: there is no database", ErrOption)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &session{settings: s, conn: conn}, nil
}

// close returns the connection to the pool, unless it was discarded.
func (s *session) close() error {
	if err := s.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return err
	}
	return nil
}

// run migrates to the version that plan returns for the current state. It calls plan
// again after it has acquired the lock, since the version may have changed.
func run(
	ctx context.Context, db *sql.DB, d dialect.Dialect, opts *Options, plan func(State) uint,
) (err error) {
	s, err := open(ctx, db, d, opts)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, s.close())
		if err != nil {
			err = fmt.Errorf("migrate %v: %w", s.lock, err)
		}
	}()
	st, err := s.state(ctx)
	if err == nil {
		if target := plan(st); target == st.begin(target) && st.sound(target) == nil {
			return nil
		}
	} else if s.dialect.Classify(err) != sqltext.Transient { // another process has SQLite's file, which locked waits for
		return err
	}
	return s.locked(ctx, func() error {
		st, err := s.state(ctx)
		if err != nil {
			return err
		}
		target := plan(st)
		// Checked only now: without the lock, the state may be inconsistent.
		if err := st.sound(target); err != nil {
			return err
		}
		return s.migrate(ctx, st, target)
	})
}

// locked calls do while no other process can migrate the same tables. It uses a
// transaction if the database can roll back changes of the schema.
func (s *session) locked(ctx context.Context, do func() error) error {
	err := s.flavour.lock(ctx, s)
	if err == nil {
		err = do()
	}
	if err == nil {
		err = s.flavour.unlock(ctx, s)
	}
	if err != nil {
		s.undo(ctx)
		return s.explained(ctx, err)
	}
	return nil
}

// undo rolls back and releases the lock, even if ctx has ended. If that fails, the
// connection is closed instead of being returned to the pool.
func (s *session) undo(ctx context.Context) {
	const undoTimeout = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := s.flavour.undo(ctx, s); err != nil {
		discard(s.conn)
	}
}

// explained adds ctx.Err() or ErrBusy to an error, if it was caused by that. Drivers report
// the end of ctx in different ways.
func (s *session) explained(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	class := s.dialect.Classify(err)
	if (class == sqltext.Transient || class == sqltext.OldPlan || class == sqltext.Blocked) && !errors.Is(err, ErrBusy) {
		return fmt.Errorf("%w: another migration, or a transaction that uses the table: %w", ErrBusy, err)
	}
	return err
}

func (s *session) exec(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if s.script != nil {
			s.script.add(statement)
			continue
		}
		if _, err := s.conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
