package sqllock

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

// inspect asks the database what it is and what its tables are like, and returns an
// ErrDatabase if it has not said so by then.
func (r *Repository) inspect(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := r.inspectWithin(ctx)
	if err != nil && ended(ctx) != nil && !errors.Is(err, ErrDatabase) && !errors.Is(err, ErrInvalid) {
		return fmt.Errorf("%w: not ready within %v: %w", ErrDatabase, timeout, err)
	}
	return err
}

func (r *Repository) inspectWithin(ctx context.Context) error {
	found, err := call(ctx, r, "look at the columns of", r.names.Lock, func() (lockTable, error) { return r.lookAtTable(ctx) })
	if err != nil {
		return cmp.Or(r.checkServer(r.serverOf(ctx, err)), err)
	}
	if err := r.checkServer(found.server); err != nil {
		return err
	}
	if r.layout, err = layoutOf(r.names.Lock, found.columns); err != nil {
		return err
	}
	r.looksFirst = r.waitsForPinnedRows(found.server)
	return r.findFence(ctx)
}

// A lockTable is what the database says of itself and of the lock table.
type lockTable struct {
	server  string // its name and version
	columns []*sql.ColumnType
}

func (r *Repository) lookAtTable(ctx context.Context) (found lockTable, err error) {
	rows, err := r.db.QueryxContext(ctx, r.dialect.Statements(dialect.Spring6, r.names).Columns)
	if err != nil {
		return found, err
	}
	defer func() { _ = rows.Close() }() // rows.Err tells
	if found.columns, err = rows.ColumnTypes(); err != nil {
		return found, err
	}
	for rows.Next() {
		values := make([]any, len(found.columns))
		for i := range values {
			values[i] = new(any) // NULL
		}
		values[0] = &found.server
		if err := rows.Scan(values...); err != nil {
			return found, err
		}
	}
	found.columns = found.columns[1:]
	return found, rows.Err()
}

// serverOf returns the name and version of a server that refused the first statement with
// err, or "". With the wrong dialect it may not even know how it is asked for its name.
func (r *Repository) serverOf(ctx context.Context, err error) (server string) {
	if r.dialect.Classify(err) != dialect.Unknown || r.db.Stats().OpenConnections == 0 {
		return "" // the dialect knows what is wrong, or there is no server to ask
	}
	for _, d := range []dialect.Dialect{dialect.Postgres(), dialect.SQLite()} { // MySQL is asked as PostgreSQL is
		server, err := call(ctx, r, "ask for the version of", r.names.Lock, func() (server string, err error) {
			err = r.db.GetContext(ctx, &server, d.Statements(dialect.Spring6, r.names).Version)
			return server, err
		})
		if err == nil {
			return server
		}
	}
	return ""
}

// checkServer returns an ErrInvalid if the server is known to need another dialect.
func (r *Repository) checkServer(server string) error {
	if needed := dialectFor(server); needed != "" && needed != r.dialect.Name {
		return invalid("the dialect is %s, but the database says that it is %q, which needs the dialect %s", r.dialect.Name, server, needed)
	}
	return nil
}

// dialectFor returns the name of the dialect for a server by what it says of itself, or ""
// for one that is not known.
func dialectFor(server string) string {
	switch {
	case strings.HasPrefix(server, "PostgreSQL"):
		return "postgres"
	case strings.HasPrefix(server, "SQLite"):
		return "sqlite"
	case strings.Contains(server, "MariaDB"), strings.TrimLeft(server, "0123456789") != server:
		return "mysql" // Oracle's says no more than its number
	default:
		return ""
	}
}

// waitsForPinnedRows reports whether a statement waits for a pinned row for as long
// as the session says: Oracle's MySQL, where that is 50 s by default. MariaDB's other
// statements limit it. What an unknown server does is not known either.
func (r *Repository) waitsForPinnedRows(server string) bool {
	return !r.dialect.Returning && !strings.Contains(server, "MariaDB")
}

// findFence sees that there is what fencing tokens are drawn from.
func (r *Repository) findFence(ctx context.Context) error {
	if r.names.Fence == "" {
		return nil
	}
	_, err := call(ctx, r, "look at the columns of", r.names.Fence, func() (struct{}, error) {
		_, err := r.db.ExecContext(ctx, r.dialect.Statements(r.layout, r.names).Fence)
		return struct{}{}, err
	})
	return err
}

func layoutOf(table string, columns []*sql.ColumnType) (dialect.Layout, error) {
	found := make(map[string]bool)
	for _, c := range columns {
		name := strings.ToUpper(c.Name())
		found[name] = true
		// Spring 4.3 left whole seconds on MySQL: a lease rounded down to one
		// ends before its holder knows.
		_, digits, known := c.DecimalSize()
		if known && digits < 3 && (name == "CREATED_DATE" || name == "EXPIRED_AFTER") {
			return 0, fmt.Errorf("%w: column %s of %s keeps %d digits of a second, a lease needs 6: change it to DATETIME(6)",
				ErrSchema, name, table, digits)
		}
	}
	for _, name := range []string{"LOCK_KEY", "REGION", "CLIENT_ID", "CREATED_DATE"} {
		if !found[name] {
			return 0, fmt.Errorf("%w: %s has no column %s: it is not a lock table of Spring Integration or of `sqllock migrate up`",
				ErrSchema, table, name)
		}
	}
	if found["EXPIRED_AFTER"] {
		return dialect.Spring7, nil
	}
	return dialect.Spring6, nil
}
