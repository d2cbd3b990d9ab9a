package session_test

import (
	"context"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/mysqldriver"
	"github.com/sqllock/sqllock/internal/session/pgxdriver"
	"github.com/sqllock/sqllock/internal/session/pqdriver"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/transaction"
	"github.com/sqllock/sqllock/migrations"
)

// A table is read over a pool of one connection, by a statement that is prepared.
type table struct {
	t     *testing.T
	pools *session.Pools
	pool  transaction.Pool
	text  string // of the statement
}

func newTable(t *testing.T, target session.Target) table {
	t.Helper()
	pools := check.Value(target.Connect(t.Context(), session.Need{Connections: 1}))(t)
	t.Cleanup(func() { _ = pools.Close() })
	d := sqltext.Of(target.Dialect)
	s := table{t, pools, transaction.Pool{DB: pools.DB.DB, Dialect: &d}, "SELECT v FROM t WHERE k = ?"}
	if d.Numbered {
		s.text = sqlx.Rebind(sqlx.DOLLAR, s.text)
	}
	s.exec("CREATE TABLE t (k INT, v CHAR(5))")
	s.exec("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
	return s
}

func (s table) exec(text string) {
	s.t.Helper()
	must(s.t, check.ErrorOf(s.pools.DB.ExecContext(s.t.Context(), text)))
}

// read sends the statement three times.
func (s table) read() {
	s.t.Helper()
	for range 3 {
		got, try := "", s.pool.Try()
		for try.Next(s.t.Context()) {
			try.Err = try.Conn.QueryRowContext(s.t.Context(), s.text, 1).Scan(&got)
		}
		if try.Err != nil || got != "one" && got != "one  " {
			s.t.Fatalf("%q, error %v", got, try.Err)
		}
	}
}

// checkPrepared checks how often the connection has prepared the statement.
func (s table) checkPrepared(want int) {
	s.t.Helper()
	var n int
	must(s.t, s.pools.DB.GetContext(s.t.Context(), &n, "SELECT COUNT(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT v%'"))
	if n != want {
		s.t.Errorf("prepared %d times, want %d", n, want)
	}
}

// A statement that is sent often is prepared. If the server loses it, it is sent again as it is, and the caller does
// not notice.
func TestPreparedStatements(t *testing.T) {
	t.Parallel()
	admin := dbtest.Postgres(t)
	for name, parse := range map[string]func(string) (session.Target, error){"pgx": pgxdriver.Parse, "lib/pq": pqdriver.Parse} {
		for cause, lose := range map[string]func(table){
			"none":        func(table) {},
			"DISCARD ALL": func(s table) { s.exec("DISCARD ALL") },
			"DEALLOCATE":  func(s table) { s.exec("DEALLOCATE ALL") },
			"another type of the result": func(s table) {
				s.exec("ALTER TABLE t ALTER COLUMN v TYPE VARCHAR(5)")
			},
			"another table": func(s table) {
				s.exec("ALTER TABLE t RENAME TO old")
				s.exec("CREATE TABLE t (v TEXT, k BIGINT)")
				s.exec("INSERT INTO t VALUES ('one', 1)")
			},
			"the end of the connection": func(s table) {
				var pid int
				must(s.t, s.pools.DB.GetContext(s.t.Context(), &pid, "SELECT pg_backend_pid()"))
				must(s.t, check.ErrorOf(admin.DB.ExecContext(s.t.Context(), "SELECT pg_terminate_backend($1, 5000)", pid)))
			},
		} {
			t.Run(name+"/"+cause, func(t *testing.T) {
				t.Parallel()
				target := check.Value(parse(dbtest.Postgres(t).DSN))(t)
				s := newTable(t, target)
				s.read()
				s.checkPrepared(1)
				lose(s)
				s.read()
			})
		}
	}
}

// MySQL and MariaDB prepare one statement for each text, and none for those that have many variants.
func TestPreparedStatements_OfMySQL(t *testing.T) {
	t.Parallel()
	dbtest.Databases{server.MySQL: dbtest.MySQL, server.OracleMySQL: dbtest.OracleMySQL}.Each(t, func(t *testing.T, db *dbtest.DB) {
		target := check.Value(mysqldriver.Parse(db.DSN))(t)
		s := newTable(t, target)
		fixed := s.text
		for _, s.text = range []string{fixed, "SELECT v FROM t WHERE k IN (?)", "SET @a = 1; " + fixed} {
			s.read()
		}
		var variable string
		var n int
		must(t, s.pools.DB.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'").Scan(&variable, &n))
		check.Equal(t, "statements were prepared", n, 1)
		s.exec("DROP TABLE t")
		s.exec("CREATE TABLE t (v VARCHAR(5), k BIGINT) AS SELECT 'one' AS v, 1 AS k")
		s.text = fixed
		s.read()
	})
	if target, err := mysqldriver.Parse("app:secret@tcp(db:3306)/app"); err != nil || !target.IsLost(&mysql.MySQLError{Number: 1461}) || target.IsLost(&mysql.MySQLError{Number: 1213}) {
		t.Error(err)
	}
}

// The statements of a pair are prepared on the server, on each driver that prepares, once
// they have been sent twice. On Oracle's MySQL the acquisition is a message, so only the
// release is prepared.
func TestPreparedStatements_OfAPair(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		parse    func(string) (session.Target, error)
		acquires string // how the statement that is prepared begins, on PostgreSQL
		prepared int    // how many of a pair are, elsewhere
	}{
		"pgx":            {dbtest.Postgres, pgxdriver.Parse, "INSERT", 0},
		"lib/pq":         {dbtest.Postgres, pqdriver.Parse, "INSERT", 0},
		"MariaDB":        {dbtest.MySQL, mysqldriver.Parse, "", 2},
		"Oracle's MySQL": {dbtest.OracleMySQL, mysqldriver.Parse, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := c.database(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			target := check.Value(c.parse(db.DSN))(t)
			pools := check.Value(target.Connect(t.Context(), session.Need{Connections: 2, Acquirers: true}))(t)
			defer func() { must(t, pools.Close()) }()
			o := &sqllock.RepositoryOptions{MultiStatements: pools.MultiStatements}
			if pools.Acquirers != nil {
				o.Acquirers = pools.Acquirers.DB
				pools.Acquirers.SetMaxOpenConns(1)
			}
			pools.DB.SetMaxOpenConns(1)
			r := check.Value(sqllock.NewRepository(dbtest.Unhurried(t.Context()), pools.DB.DB, target.Dialect, o))(t)
			pair := func() {
				holder := r.NewHolder()
				if !check.Value(r.Acquire(t.Context(), "k", holder, time.Minute))(t).Acquired || !check.Value(r.Delete(t.Context(), "k", holder))(t) {
					t.Fatal("not acquired, or not deleted")
				}
			}
			for range 3 {
				pair()
			}
			if c.acquires == "" {
				before := executed(t, pools.DB)
				pair()
				check.Equal(t, "prepared statements that a pair executes", executed(t, pools.DB)-before, c.prepared)
				return
			}
			for text, pool := range map[string]*sqlx.DB{c.acquires: pools.Acquirers, "DELETE": pools.DB} {
				var n int
				must(t, pool.GetContext(t.Context(), &n, "SELECT COUNT(*) FROM pg_prepared_statements WHERE statement LIKE $1 || '%'", text))
				check.Equal(t, text+" is prepared", n, 1)
			}
		})
	}
}

// executed returns how many prepared statements a session of MySQL has executed.
func executed(t *testing.T, db *sqlx.DB) (n int) {
	t.Helper()
	var variable string
	must(t, db.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Com_stmt_execute'").Scan(&variable, &n))
	return n
}

// In a transaction nothing is prepared: an error would end it.
func TestPreparedStatements_InATransaction(t *testing.T) {
	t.Parallel()
	target := check.Value(pqdriver.Parse(dbtest.Postgres(t).DSN))(t)
	s := newTable(t, target)
	s.read()
	s.exec("DISCARD ALL")
	tx := check.Value(s.pools.DB.BeginTx(t.Context(), nil))(t)
	for range 3 {
		must(t, check.ErrorOf(tx.ExecContext(t.Context(), "UPDATE t SET v = $1", "one")))
	}
	var got string
	must(t, tx.QueryRowContext(t.Context(), "SELECT v FROM t WHERE k = $1", 1).Scan(&got))
	must(t, tx.Commit())
	s.checkPrepared(0)
}

// Nor is anything behind a pooler, or where it is not known that there is none.
func TestPreparedStatements_BehindAPooler(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parameters map[string]string // of the DSN
		drop       func(*session.Settings)
	}{
		"it ignores settings":                  {nil, func(s *session.Settings) { s.Pooled = true }},
		"the DSN has the setting that is read": {map[string]string{"idle_in_transaction_session_timeout": "10000"}, func(*session.Settings) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := check.Value(pqdriver.Parse(dbtest.Postgres(t).With(t, c.parameters)))(t)
			connector := target.Connector
			target.Connector = func(source string, s session.Settings) (driver.Connector, error) {
				c.drop(&s)
				return connector(source, s)
			}
			s := newTable(t, target)
			s.read()
			s.checkPrepared(0)
		})
	}
}

// A statement whose context ends is cancelled, and the connection works on or is replaced. It is cancelled only once
// the server executes it: PostgreSQL forgets a request to cancel that comes before the statement.
func TestPreparedStatements_Cancelled(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	target := check.Value(pqdriver.Parse(db.DSN))(t)
	s := newTable(t, target)
	wait := func(ctx context.Context, seconds float64) error {
		return check.ErrorOf(s.pools.DB.ExecContext(ctx, "SELECT pg_sleep($1) -- is cancelled", seconds))
	}
	for range 3 {
		must(t, wait(t.Context(), 0))
	}
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := check.Begin(func() error { return wait(ctx, 3600) })
		for executing := 0; executing == 0; {
			must(t, db.DB.GetContext(t.Context(), &executing,
				"SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%-- is cancelled' AND datname = current_database()"))
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("no error")
		}
		s.read()
	}
}
