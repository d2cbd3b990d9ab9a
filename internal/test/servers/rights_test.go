package servers_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/names"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/migrations"
)

// A user who may use nothing but the tables locks and guards. The question what cluster the server belongs to is
// answered, and does not take the snapshot of the transaction that asks.
func TestRights_TablesAlone(t *testing.T) {
	t.Parallel()
	mysqls.migrated(t, func(t *testing.T, db *dbtest.DB) {
		dsn, _ := withDocumentedGrants(t, db)
		few := db.OpenDSN(t, "mysql", dsn)
		r := check.Value(sqllock.NewRepository(unhurried(t), few.DB, db.Dialect, nil))(t)
		must(t, newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}).ExecuteLockedTx(t.Context(), "k", few.DB, nil, func(context.Context, *sql.Tx) error { return nil }))

		tx := few.MustBeginTx(t.Context(), nil)
		found := check.Value(probe.ReadCluster(t.Context(), tx, sqltext.Of(db.Dialect)))(t)
		db.DB.MustExecContext(t.Context(), "INSERT INTO INT_LOCK (REGION, LOCK_KEY, CREATED_DATE, EXPIRED_AFTER) VALUES ('r', 'late', '2026-01-01', '2026-01-01')")
		var rows int
		must(t, tx.GetContext(t.Context(), &rows, "SELECT COUNT(*) FROM INT_LOCK"))
		must(t, tx.Rollback())
		if found.Certifies() || rows != 1 {
			t.Errorf("%+v, and %d rows", found, rows)
		}
	})
}

// Without rights on the table of names locks work, lists have no names, and nothing is reported.
func TestRights_WithoutNames(t *testing.T) {
	t.Parallel()
	databases{server.Postgres: dbtest.Postgres, server.MySQL: dbtest.MySQL, server.OracleMySQL: dbtest.OracleMySQL}.each(t, func(t *testing.T, db *dbtest.DB) {
		must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
		dsn, user := withGrants(t, db, "app")
		db.DB.MustExecContext(t.Context(), "REVOKE ALL ON INT_LOCK_NAME FROM "+user)
		few := db.OpenDSN(t, db.Driver, dsn)
		r := check.Value(sqllock.NewRepository(unhurried(t), few.DB, db.Dialect, nil))(t)
		registry := newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true})
		lease := check.Value(registry.TryLock(t.Context(), "k"))(t)
		// real time: the process tries to write names meanwhile: if it is late, the test notices less
		time.Sleep(names.NamedAfter * 5 / 2) // it has tried
		rows := check.Value(r.List(t.Context()))(t)
		if len(rows) != 1 || rows[0].Key != "" || rows[0].Process != (sqllock.Process{}) {
			t.Errorf("%+v", rows)
		}
		other := check.Value(sqllock.NewRepository(unhurried(t), few.DB, db.Dialect, nil))(t)
		_, err := newRegistry(t, other, &sqllock.RegistryOptions{NoRenew: true}).TryLock(t.Context(), "k")
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Holder != lease.Holder() || held.Process != (sqllock.Process{}) {
			t.Errorf("%v", err)
		}
		must(t, check.ErrorOf(registry.DeleteExpired(t.Context())))
		must(t, lease.Unlock(t.Context()))
	})
}

var sqlBlock = regexp.MustCompile("(?s)```sql\n(.*?)```")

// documentedGrants returns the statements of docs/operations.md for a user: app, which locks, or migrator.
func documentedGrants(t *testing.T, dialect, user string) (statements []string) {
	t.Helper()
	page := check.Value(os.ReadFile("../../../docs/operations.md"))(t)
	for _, block := range sqlBlock.FindAllStringSubmatch(string(page), -1) {
		isPostgres := strings.Contains(block[1], "ON SCHEMA")
		isFor := strings.Contains(block[1], "TO "+user+";") || strings.Contains(block[1], "TO '"+user+"'@")
		if isFor && isPostgres == (dialect == "postgres") {
			statements = append(statements, strings.Split(strings.TrimSuffix(strings.TrimSpace(block[1]), ";"), ";\n")...)
		}
	}
	if len(statements) == 0 {
		t.Fatalf("docs/operations.md: %q", statements)
	}
	return statements
}

// TestRights_Migrations migrates up and down as the user of docs/operations.md, up without DROP. The table is then this
// user's.
func TestRights_Migrations(t *testing.T) {
	t.Parallel()
	databases{server.Postgres: dbtest.Postgres, server.MySQL: dbtest.MySQL, server.OracleMySQL: dbtest.OracleMySQL}.each(t, func(t *testing.T, db *dbtest.DB) {
		dsn, user := withGrants(t, db, "migrator")
		drop := ""
		if db.Name == "mysql" {
			drop = "DROP ON " + check.Value(mysql.ParseDSN(db.DSN))(t).DBName + ".*"
			db.DB.MustExecContext(t.Context(), "REVOKE "+drop+" FROM "+user)
		}
		pool := db.OpenDSN(t, db.Driver, dsn)
		for _, layout := range []dialect.Layout{dialect.Spring6, dialect.Spring7} { // one after the other
			must(t, migrations.Up(t.Context(), pool.DB, db.Dialect, &migrations.Options{Layout: layout}))
		}
		repository := repository(t, db, nil)
		must(t, newRegistry(t, repository, &sqllock.RegistryOptions{NoRenew: true}).ExecuteLocked(t.Context(), "k", func(context.Context) error { return nil }))
		if drop != "" {
			db.DB.MustExecContext(t.Context(), "GRANT "+drop+" TO "+user)
		}
		must(t, migrations.Down(t.Context(), db.OpenDSN(t, db.Driver, dsn).DB, db.Dialect, nil))
	})
}

// withDocumentedGrants returns the DSN of a new user who may do what docs/operations.md grants, and what creates
// tables that belong to this user's application.
func withDocumentedGrants(t *testing.T, db *dbtest.DB) (dsn string, newTable func(testing.TB, string, string)) {
	t.Helper()
	dsn, user := withGrants(t, db, "app")
	return dsn, func(tb testing.TB, name, columns string) {
		tb.Helper()
		db.DB.MustExecContext(tb.Context(), "CREATE TABLE "+name+columns)
		db.DB.MustExecContext(tb.Context(), "GRANT ALL ON "+name+" TO "+user)
	}
}

// withGrants creates a user like the one that docs/operations.md calls like.
func withGrants(t *testing.T, db *dbtest.DB, like string) (dsn, user string) {
	t.Helper()
	newUser := withMySQLUser
	if db.Name == "postgres" {
		newUser = withPostgresUser
	}
	dsn, user, names := newUser(t, db, like)
	for _, statement := range documentedGrants(t, db.Name, like) {
		db.DB.MustExecContext(t.Context(), names.Replace(statement))
	}
	return dsn, user
}

// withPostgresUser creates a role. names replaces what the document calls it and its schema.
func withPostgresUser(t *testing.T, db *dbtest.DB, like string) (dsn, role string, names *strings.Replacer) {
	t.Helper()
	u := check.Value(url.Parse(db.DSN))(t)
	schema := u.Query().Get("search_path")
	role = schema + "_" + like
	db.DB.MustExecContext(t.Context(), "CREATE ROLE "+role+" LOGIN PASSWORD 'few'")
	t.Cleanup(func() {
		db.DB.MustExecContext(context.Background(), "DROP OWNED BY "+role)
		db.DB.MustExecContext(context.Background(), "DROP ROLE "+role)
	})
	u.User = url.UserPassword(role, "few")
	return u.String(), role, strings.NewReplacer("SCHEMA public", "SCHEMA "+schema, "TO "+like, "TO "+role)
}

// withMySQLUser creates a user. names replaces what the document calls it and its database.
func withMySQLUser(t *testing.T, db *dbtest.DB, like string) (dsn, user string, names *strings.Replacer) {
	t.Helper()
	config := check.Value(mysql.ParseDSN(db.DSN))(t)
	name := config.DBName[:min(22, len(config.DBName))] + "_" + like // a user of MySQL has 32 characters
	user = "'" + name + "'@'%'"
	db.DB.MustExecContext(t.Context(), "CREATE USER "+user+" IDENTIFIED BY 'few'")
	t.Cleanup(func() { db.DB.MustExecContext(context.Background(), "DROP USER "+user) })
	names = strings.NewReplacer("ON app.", "ON "+config.DBName+".", "'"+like+"'@'%'", user)
	config.User, config.Passwd = name, "few"
	return config.FormatDSN(), user, names
}
