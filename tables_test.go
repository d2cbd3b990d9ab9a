package sqllock_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// lockTable creates a lock table whose times have a type, and the rest of it as it stands in suffix.
func lockTable(t *testing.T, db *dbtest.DB, created, expired, suffix string) {
	t.Helper()
	_, err := db.DB.ExecContext(t.Context(), `CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36),
		CREATED_DATE `+created+` NOT NULL, EXPIRED_AFTER `+expired+` NOT NULL, PRIMARY KEY (LOCK_KEY, REGION))`+suffix)
	must(t, err)
}

// A session would read times with a time zone in its own, and a lease that is rounded to a second ends
// before its holder knows. What a time is made of makes no difference.
func TestTimesThatAreNoneForALease(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open             func(testing.TB) *dbtest.DB
		created, expired string
		want             []string // nothing if the table is as it should be
	}{
		"MariaDB, TIMESTAMP":       {dbtest.MySQL, "DATETIME(6)", "TIMESTAMP(6)", []string{"column EXPIRED_AFTER", "TIMESTAMP", "DATETIME(6)"}},
		"MySQL, TIMESTAMP":         {dbtest.OracleMySQL, "TIMESTAMP(6)", "DATETIME(6)", []string{"column CREATED_DATE", "TIMESTAMP", "DATETIME(6)"}},
		"PostgreSQL, TIMESTAMPTZ":  {dbtest.Postgres, "TIMESTAMP", "TIMESTAMPTZ", []string{"column EXPIRED_AFTER is timestamp with time zone", "without time zone"}},
		"PostgreSQL, whole second": {dbtest.Postgres, "TIMESTAMP(0)", "TIMESTAMPTZ(0)", []string{"column CREATED_DATE is timestamp(0) without", "column EXPIRED_AFTER is timestamp(0) with"}},
		"PostgreSQL, a domain":     {dbtest.Postgres, "TIMESTAMP", "TIME_OF_LEASE", nil},
		"MariaDB, milliseconds":    {dbtest.MySQL, "DATETIME(3)", "DATETIME(3)", nil},
		"PostgreSQL, milliseconds": {dbtest.Postgres, "TIMESTAMP(3)", "TIMESTAMP(3)", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := test.open(t)
			if test.expired == "TIME_OF_LEASE" {
				db.DB.MustExecContext(t.Context(), "CREATE DOMAIN TIME_OF_LEASE AS TIMESTAMP(6)")
			}
			lockTable(t, db, test.created, test.expired, "")
			for driver, pool := range driversOf(t, db, db.DSN) {
				refusedTable(t, driver, pool, db, nil, test.want...)
			}
		})
	}
}

// driversOf returns a pool of each driver.
func driversOf(t *testing.T, db *dbtest.DB, dsn string) map[string]*sqlx.DB {
	t.Helper()
	pools := map[string]*sqlx.DB{db.Driver: db.OpenDSN(t, db.Driver, dsn)}
	if db.Name == "postgres" {
		pools["pgx"] = db.OpenDSN(t, "pgx", dsn)
	}
	return pools
}

// refusedTable checks that a repository is refused with ErrSchema, for these reasons, or accepted if
// there are none.
func refusedTable(t *testing.T, driver string, pool *sqlx.DB, db *dbtest.DB, keys sqllock.KeyMapper, reasons ...string) {
	t.Helper()
	_, err := sqllock.NewRepository(t.Context(), pool.DB, db.Dialect, &sqllock.RepositoryOptions{Keys: keys, DisableFencing: true})
	if (err != nil) != (len(reasons) > 0) || err != nil && !errors.Is(err, sqllock.ErrSchema) {
		t.Errorf("%s: %v", driver, err)
	}
	for _, reason := range reasons {
		if err != nil && !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: no %q in: %v", driver, reason, err)
		}
	}
}

// Joint releases name the rows of a table by what a view of it lacks.
func TestAViewIsRefused(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *dbtest.DB{"PostgreSQL": dbtest.Postgres, "MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Prefix: "REAL_"}))
			db.DB.MustExecContext(t.Context(), "CREATE VIEW INT_LOCK AS SELECT * FROM REAL_LOCK")
			refusedTable(t, db.Driver, db.DB, db, nil, "INT_LOCK", "view", "Prefix")
		})
	}
}

// Without a primary key the statement that acquires would insert a row for each holder.
func TestATableWithoutAPrimaryKeyIsRefused(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *dbtest.DB{"MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			lockTable(t, db, "DATETIME(6)", "DATETIME(6)", "")
			db.DB.MustExecContext(t.Context(), "ALTER TABLE INT_LOCK DROP PRIMARY KEY")
			refusedTable(t, db.Driver, db.DB, db, nil, "INT_LOCK has no primary key (LOCK_KEY, REGION)")
		})
	}
}

// A server whose column lacks a character may store a question mark, which no statement finds again.
func TestAColumnThatLacksCharactersIsRefused(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *dbtest.DB{"MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			lockTable(t, db, "DATETIME(6)", "DATETIME(6)", " CHARACTER SET utf8mb3")
			refusedTable(t, db.Driver, db.DB, db, sqllock.PlainKeys, "LOCK_KEY of INT_LOCK has the character set utf8mb3", "CONVERT TO CHARACTER SET utf8mb4")
			refusedTable(t, db.Driver, db.DB, db, sqllock.SpringKeys) // these are ASCII
		})
	}
}

// A session that translates text writes another key than one that does not.
func TestASessionThatTranslatesTextIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open                    func(testing.TB) *dbtest.DB
		driver, parameter, cure string
	}{
		// lib/pq asks for UTF8, and refuses any other encoding; pgx leaves it to the database.
		"PostgreSQL": {latin1Database, "pgx", "application_name=pgx", "client_encoding=UTF8"},
		"MariaDB":    {dbtest.MySQL, "mysql", "charset=latin1", "charset=utf8mb4"},
		"MySQL":      {dbtest.OracleMySQL, "mysql", "charset=latin1", "charset=utf8mb4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := test.open(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			pool := db.OpenDSN(t, test.driver, db.DSN+separator(db.DSN)+test.parameter)
			own := []sqllock.RepositoryOptions{{Keys: sqllock.PlainKeys}, {Region: "größe"}}
			for _, opts := range own {
				_, err := sqllock.NewRepository(t.Context(), pool.DB, db.Dialect, &opts)
				if !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), test.cure) {
					t.Error(err)
				}
			}
			_, err := sqllock.NewRepository(t.Context(), pool.DB, db.Dialect, nil)
			must(t, err)
			for driver, pool := range driversOf(t, db, db.DSN+separator(db.DSN)+test.cure) {
				for _, opts := range own {
					if _, err := sqllock.NewRepository(t.Context(), pool.DB, db.Dialect, &opts); err != nil {
						t.Error(driver, err)
					}
				}
			}
		})
	}
}

// latin1Database is a database of PostgreSQL whose text is not UTF-8.
func latin1Database(tb testing.TB) *dbtest.DB {
	tb.Helper()
	server := dbtest.Postgres(tb)
	u, err := url.Parse(server.DSN)
	if err != nil {
		tb.Fatal(err)
	}
	db := *server
	name := u.Query().Get("search_path") + "_latin1"
	server.DB.MustExecContext(tb.Context(), "CREATE DATABASE "+name+" ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	tb.Cleanup(func() { server.DB.MustExec("DROP DATABASE " + name + " WITH (FORCE)") })
	u.Path = "/" + name
	values := u.Query()
	values.Del("search_path")
	u.RawQuery = values.Encode()
	db.DSN = u.String()
	db.DB = db.Open(tb)
	return &db
}
