package migrations_test

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

var must = check.Must

func wantErr(t *testing.T, err, want error, texts ...string) {
	t.Helper()
	check.Is(t, err, want)
	for _, text := range texts {
		if err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in the error: %v", text, err)
		}
	}
}

// same compares what is wanted with what there is.
func same[V any](t *testing.T, what string, want, got V) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, -want +got:\n%s", what, diff)
	}
}

func run(t *testing.T, db *dbtest.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.DB.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func up(t *testing.T, db *dbtest.DB, opts *migrations.Options) {
	t.Helper()
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, opts))
}

func status(t *testing.T, db *dbtest.DB, opts *migrations.Options) migrations.State {
	t.Helper()
	return check.Value(migrations.Status(t.Context(), db.DB.DB, db.Dialect, opts))(t)
}

// wantAt checks version and layout under Spring's names.
func wantAt(t *testing.T, db *dbtest.DB, version uint, layout dialect.Layout) {
	t.Helper()
	want := migrations.State{
		Version: version, Target: 4, Latest: 4, Layout: layout,
		Table: "INT_LOCK", Bookkeeping: "INT_LOCK_MIGRATIONS",
	}
	if layout == dialect.Spring6 {
		want.Target = 2
	}
	same(t, "state", want, status(t, db, nil))
}

// tables returns the names of all tables and sequences of the test's database,
// in lower case.
func tables(t *testing.T, db *dbtest.DB) []string {
	t.Helper()
	var names []string
	must(t, db.DB.SelectContext(t.Context(), &names, map[string]string{
		"sqlite":   "SELECT lower(name) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY 1",
		"postgres": "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'S') ORDER BY 1",
		"mysql":    "SELECT LOWER(TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1",
	}[db.Name]))
	return names
}

// A row is a row of the lock table, as text.
type row struct {
	Region  string         `db:"region"`
	Key     string         `db:"k"`
	Client  sql.NullString `db:"client"`
	Created string         `db:"created"`
	Expires string         `db:"expires"`
}

func text(db *dbtest.DB, column string) string {
	if db.Name == "mysql" {
		return "CAST(" + column + " AS CHAR)"
	}
	return "CAST(" + column + " AS VARCHAR)"
}

func rows(t *testing.T, db *dbtest.DB, layout dialect.Layout) []row {
	t.Helper()
	expires := "''"
	if layout == dialect.Spring7 {
		expires = "COALESCE(" + text(db, "EXPIRED_AFTER") + ", '')"
	}
	var all []row
	must(t, db.DB.SelectContext(t.Context(), &all, "SELECT REGION AS region, LOCK_KEY AS k, CLIENT_ID AS client, "+
		text(db, "CREATED_DATE")+" AS created, "+expires+" AS expires FROM INT_LOCK ORDER BY REGION, LOCK_KEY"))
	return all
}

// left returns how long the lease of each row still lasts, by the database's clock.
func left(t *testing.T, db *dbtest.DB, table string) []time.Duration {
	t.Helper()
	list := check.Value(db.DB.QueryContext(t.Context(), sqltext.Of(db.Dialect).Statements(dialect.Spring7, sqltext.Names{Lock: table}).List))(t)
	defer list.Close()
	var all []time.Duration
	for list.Next() {
		var region, key, client string
		var age, micros int64
		must(t, list.Scan(&region, &key, &client, &age, &micros))
		all = append(all, time.Duration(micros)*time.Microsecond)
	}
	must(t, list.Err())
	return all
}

// columns returns the names of a table's columns in upper case.
func columns(t *testing.T, db *dbtest.DB, table string) string {
	t.Helper()
	list := check.Value(db.DB.QueryContext(t.Context(), "SELECT * FROM "+table+" WHERE 1 = 0"))(t)
	defer list.Close()
	names := check.Value(list.Columns())(t)
	must(t, list.Err())
	return strings.ToUpper(strings.Join(names, " "))
}

// acquire acquires a lock for an hour, as a repository does.
func acquire(t *testing.T, db *sqlx.DB, d dialect.Dialect, layout dialect.Layout) {
	t.Helper()
	hour := time.Hour.Microseconds()
	must(t, check.ErrorOf(db.NamedExecContext(t.Context(), sqltext.Of(d).Statements(layout, sqltext.Names{Lock: "INT_LOCK"}).Acquire, map[string]any{
		"region": "DEFAULT", "key": "a-key", "holder": "a-token", "ttl": hour, "left": hour, "shift": 0,
	})))
}

var dialects = map[string]dialect.Dialect{
	"sqlite":   dialect.SQLite(),
	"postgres": dialect.Postgres(),
	"mysql":    dialect.MySQL(),
}

// The variables of a process that migrates up: the driver, and the DSN.
const (
	childDriver = "SQLLOCK_MIGRATE_DRIVER"
	childDSN    = "SQLLOCK_MIGRATE_DSN"
)

func TestMain(m *testing.M) { child.Main(m, map[string]child.Role{"up": upInChild}) }

func upInChild(ctx context.Context, _ <-chan string) error {
	driver := os.Getenv(childDriver)
	db, err := sql.Open(driver, os.Getenv(childDSN))
	if err != nil {
		return err
	}
	defer db.Close()
	return migrations.Up(ctx, db, dialects[driver], nil)
}
