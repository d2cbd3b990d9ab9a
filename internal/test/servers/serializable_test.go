package servers_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/migrations"
)

// At SERIALIZABLE, PostgreSQL notes what a statement has read. A key that is bound as text is no value for the index
// of a CHAR column: the whole table is read, and most of the commits beside it are serialization failures. Which type
// a parameter has depends on the driver, on its mode, and on the statement. The test takes seconds: it executes each
// statement in each mode.
func TestSerializable_OneKeyReadsNoTable(t *testing.T) {
	t.Parallel()
	asText := planned{"a key as text", "SELECT LOCK_KEY FROM INT_LOCK WHERE LOCK_KEY = CAST($1 AS TEXT) AND REGION = $2", []any{"100000", "r"}, 1}
	databases{server.Postgres: dbtest.Postgres, server.PostgresNewest: dbtest.PostgresNewest}.each(t, func(t *testing.T, db *dbtest.DB) {
		modes := modesOf(t, db)
		for _, layout := range []dialect.Layout{dialect.Spring6, dialect.Spring7} {
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Layout: layout, TTL: ttl}))
			fill(db, layout)
			statements := forOneKey(t, layout)
			for _, m := range modes {
				if !readsTable(t, m, asText) {
					t.Errorf("%s: PostgreSQL does not say that a scan has read the table", m.name)
				}
				for _, s := range statements {
					if readsTable(t, m, s) {
						t.Errorf("%s: %s has read the whole table", m.name, s.name)
					}
				}
			}
			db.DB.MustExec("TRUNCATE INT_LOCK") // locks that are held keep the layout
		}
	})
}

// fill fills a lock table, so that an index is worth its use.
func fill(db *dbtest.DB, layout dialect.Layout) {
	insert := "INSERT INTO INT_LOCK SELECT i, 'r', 'h' || i, now() AT TIME ZONE 'UTC' FROM generate_series(99001, 102000) AS i"
	if layout == dialect.Spring7 {
		insert = strings.Replace(insert, " FROM", ", now() AT TIME ZONE 'UTC' + INTERVAL '1 hour' FROM", 1)
	}
	db.DB.MustExec(insert)
	db.DB.MustExec("ANALYZE INT_LOCK")
}

// withoutScans is in the names of the statements for sessions whose enable_seqscan is off.
const withoutScans = " without scans"

// forOneKey returns the planned statements of all variants of the dialect. What is for several keys is there for one:
// locks on many rows become one on the table.
func forOneKey(t *testing.T, layout dialect.Layout) (all []planned) {
	t.Helper()
	seen := map[string]bool{}
	for variant, d := range map[string]sqltext.Dialect{
		"": sqltext.Postgres(), " in order": sqltext.Postgres().InOrder(), withoutScans: sqltext.Postgres().WithoutScans(),
	} {
		for _, s := range plannedStatementsOf(t, d, layout) {
			if s.keys == 1 && !seen[s.text] {
				seen[s.text] = true
				s.name = fmt.Sprintf("%s%s, layout %v", s.name, variant, layout)
				all = append(all, s)
			}
		}
	}
	return all
}

// A mode is a way in which a driver sends parameters.
type mode struct {
	name     string
	pool     *sqlx.DB
	prepared bool // by the caller
}

func modesOf(t *testing.T, db *dbtest.DB) (all []mode) {
	t.Helper()
	add := func(driver, parameter, value string, prepared bool) {
		pool := db.OpenDSN(t, driver, db.With(t, map[string]string{parameter: value}))
		pool.SetMaxOpenConns(1)
		all = append(all, mode{fmt.Sprintf("%s, %s=%s, prepared %t", driver, parameter, value, prepared), pool, prepared})
	}
	for _, value := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		add("pgx", "default_query_exec_mode", value, false)
	}
	add("pgx", "default_query_exec_mode", "exec", true)
	for _, value := range []string{"no", "yes"} {
		add("postgres", "binary_parameters", value, false)
		add("postgres", "binary_parameters", value, true)
	}
	return all
}

// readsTable executes a statement in a serializable transaction, and reports whether what it has read is the table.
func readsTable(t *testing.T, m mode, s planned) (read bool) {
	t.Helper()
	tx := check.Value(m.pool.BeginTxx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable}))(t)
	defer func() { must(t, tx.Rollback()) }()
	if strings.Contains(s.name, withoutScans) {
		must(t, check.ErrorOf(tx.ExecContext(t.Context(), "SET LOCAL enable_seqscan = off")))
	}
	query := tx.QueryContext
	if m.prepared {
		stmt, err := tx.PrepareContext(t.Context(), s.text)
		if err != nil {
			t.Fatalf("%s: %s: %v", m.name, s.name, err)
		}
		defer func() { must(t, stmt.Close()) }()
		query = func(ctx context.Context, _ string, args ...any) (*sql.Rows, error) {
			return stmt.QueryContext(ctx, args...)
		}
	}
	if err := readToEnd(query(t.Context(), s.text, s.args...)); err != nil {
		t.Fatalf("%s: %s: %v", m.name, s.name, err)
	}
	must(t, tx.GetContext(t.Context(), &read, "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'SIReadLock'"+
		" AND locktype = 'relation' AND relation = CAST('int_lock' AS regclass))"))
	return read
}

func readToEnd(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	for rows.Next() {
	}
	return rows.Err()
}
