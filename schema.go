package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

// findLayout reads the columns of the lock table.
func (r *Repository) findLayout(ctx context.Context) (dialect.Layout, error) {
	columns, err := r.columns(ctx, r.names.Lock, r.dialect.Statements(dialect.Spring6, r.names).Columns)
	if err != nil {
		return 0, err
	}
	return layoutOf(r.names.Lock, columns)
}

// findFence sees that there is what fencing tokens are drawn from.
func (r *Repository) findFence(ctx context.Context) error {
	if r.names.Fence == "" {
		return nil
	}
	_, err := r.columns(ctx, r.names.Fence, r.dialect.Statements(r.layout, r.names).Fence)
	return err
}

// waitsForPinnedRows tells whether a statement waits for a row that is pinned for as long
// as the session says: Oracle's MySQL, where that is 50 s by default. MariaDB's other
// statements limit it.
func (r *Repository) waitsForPinnedRows(ctx context.Context) (bool, error) {
	if r.dialect.Returning {
		return false, nil
	}
	var version string
	err := r.db.GetContext(ctx, &version, r.dialect.Statements(r.layout, r.names).Version)
	return !strings.Contains(version, "MariaDB"), r.trouble(ctx, "ask for the version of", r.names.Lock, err)
}

// columns returns the columns of what probe selects from table.
func (r *Repository) columns(ctx context.Context, table, probe string) ([]*sql.ColumnType, error) {
	rows, err := r.db.QueryxContext(ctx, probe)
	if err != nil {
		return nil, r.trouble(ctx, "look at the columns of", table, err)
	}
	defer func() { _ = rows.Close() }() // it has no rows to fail on
	columns, err := rows.ColumnTypes()
	if err = errors.Join(err, rows.Err()); err != nil {
		return nil, r.trouble(ctx, "look at the columns of", table, err)
	}
	return columns, nil
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
