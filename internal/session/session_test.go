package session_test

import (
	"context"
	"database/sql/driver"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/mysqldriver"
	"github.com/sqllock/sqllock/internal/session/pgxdriver"
	"github.com/sqllock/sqllock/internal/session/pqdriver"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// What locks need of a session: it is as set, and what the DSN says comes first.
func TestSettings(t *testing.T) {
	t.Parallel()
	postgres := map[string]string{
		"SELECT current_setting('application_name')":                    "sqllock",
		"SELECT current_setting('idle_in_transaction_session_timeout')": "10s",
		"SELECT current_setting('jit')":                                 "off",
		"SELECT current_setting('tcp_keepalives_idle')":                 "15",
		"SELECT current_setting('transaction_isolation')":               "read committed",
	}
	for name, c := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		parse    func(string) (session.Target, error)
		want     map[string]string
		own      map[string]string // parameters of the DSN
		wantOwn  map[string]string
	}{
		"pgx": {
			dbtest.Postgres, pgxdriver.Parse, postgres,
			map[string]string{"application_name": "billing", "binary_parameters": "yes", "pool_max_conns": "3"},
			map[string]string{"SELECT current_setting('application_name')": "billing"},
		},
		"lib/pq": {
			dbtest.Postgres, pqdriver.Parse, postgres,
			map[string]string{"idle_in_transaction_session_timeout": "7000", "default_query_exec_mode": "exec"},
			map[string]string{"SELECT current_setting('idle_in_transaction_session_timeout')": "7s"},
		},
		"MariaDB": {
			dbtest.MySQL, mysqldriver.Parse,
			map[string]string{"SELECT @@innodb_lock_wait_timeout": "1", "SELECT @@idle_transaction_timeout": "10"},
			map[string]string{"innodb_lock_wait_timeout": "3", "charset": "gbk", "AutoCommit": "0"},
			map[string]string{
				"SELECT @@innodb_lock_wait_timeout": "3", "SELECT @@idle_transaction_timeout": "10", "SELECT @@autocommit": "1", "SELECT @@character_set_client": "utf8mb4",
			},
		},
		"MariaDB's newest": {
			dbtest.MariaDBNewest, mysqldriver.Parse,
			map[string]string{"SELECT @@innodb_snapshot_isolation": "0", "SELECT @@idle_transaction_timeout": "10"},
			map[string]string{"innodb_snapshot_isolation": "ON"},
			map[string]string{"SELECT @@innodb_snapshot_isolation": "1"},
		},
		"Oracle's MySQL": {
			dbtest.OracleMySQL, mysqldriver.Parse,
			map[string]string{"SELECT @@innodb_lock_wait_timeout": "1", "SELECT @@wait_timeout": "60"},
			map[string]string{"wait_timeout": "33"},
			map[string]string{"SELECT @@wait_timeout": "33", "SELECT @@innodb_lock_wait_timeout": "1"},
		},
		"SQLite": {
			dbtest.SQLite, sqlitedriver.Parse,
			map[string]string{"PRAGMA busy_timeout": "10000", "PRAGMA journal_mode": "wal"},
			map[string]string{"_pragma": "cache_size(77)"},
			map[string]string{"PRAGMA cache_size": "77"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := c.database(t)
			checkSession(t, c.parse, db.DSN, c.want)
			checkSession(t, c.parse, db.With(t, c.own), c.wantOwn)
		})
	}
}

// checkSession compares the answers of a session with what is wanted.
func checkSession(t *testing.T, parse func(string) (session.Target, error), dsn string, want map[string]string) {
	t.Helper()
	target := check.Value(parse(dsn))(t)
	pools := check.Value(target.Connect(t.Context(), session.Need{Connections: 1}))(t)
	defer func() { check.Is(t, pools.Close(), nil) }()
	if pools.Pooler != nil {
		t.Errorf("taken for a pooler: %v", pools.Pooler)
	}
	for question, answer := range want {
		checkAnswer(t, pools.DB, question, answer)
	}
}

func checkAnswer(t *testing.T, db *sqlx.DB, question, want string) {
	t.Helper()
	var got string
	if err := db.GetContext(t.Context(), &got, question); err != nil || got != want {
		t.Errorf("%s: %q, %v; want %q", question, got, err, want)
	}
}

// A pooler may accept the settings of a session and drop them: what is asked of the first session decides. So it is
// where the isolation is not asked for, and is read committed anyway.
func TestAPoolerThatIgnoresSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parse     func(string) (session.Target, error)
		acquirers bool
		drop      func(*session.Settings)
	}{
		"pgx":                   {pgxdriver.Parse, true, func(s *session.Settings) { s.Serializable = false }},
		"lib/pq":                {pqdriver.Parse, true, func(s *session.Settings) { s.Serializable = false }},
		"pgx without acquirers": {pgxdriver.Parse, false, func(s *session.Settings) { s.Pooled = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := check.Value(c.parse(dbtest.Postgres(t).DSN))(t)
			connector, pooled := target.Connector, 0
			target.Connector = func(source string, s session.Settings) (driver.Connector, error) {
				if s.Pooled {
					pooled++
				}
				c.drop(&s)
				return connector(source, s)
			}
			pools := check.Value(target.Connect(t.Context(), session.Need{Connections: 4, Acquirers: c.acquirers}))(t)
			defer pools.Close()
			if pools.Acquirers != nil || pools.Pooler == nil || pooled != 1 {
				t.Errorf("acquirers %v, pooler %v, %d times without settings", pools.Acquirers, pools.Pooler, pooled)
			}
		})
	}
}

// A pooler may also give the first statement a session in which another client has prepared it, or the second one a
// session that does not know it, or refuse a setting. Then it is taken for a pooler, too.
func TestAPoolerThatMixesSessions(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	for _, state := range []string{"42P05", "26000", "08P01", "0A000"} {
		target := check.Value(pgxdriver.Parse(db.DSN))(t)
		connector := target.Connector
		target.Connector = func(source string, s session.Settings) (driver.Connector, error) {
			c, err := connector(source, s)
			if !s.Pooled {
				c = refusing{c, &pgconn.PgError{Code: state}}
			}
			return c, err
		}
		pools, err := target.Connect(t.Context(), session.Need{Connections: 1})
		if err != nil {
			t.Errorf("%s: %v", state, err)
			continue
		}
		if pools.Pooler == nil {
			t.Errorf("%s: not taken for a pooler", state)
		}
		check.Is(t, pools.Close(), nil)
	}
}

// refusing makes no connections.
type refusing struct {
	driver.Connector

	err error
}

func (r refusing) Connect(context.Context) (driver.Conn, error) { return nil, r.err }

// A parameter may be SQL that changes the character set. Then arguments could end their quotes.
func TestACharacterSetInAParameter(t *testing.T) {
	t.Parallel()
	target := check.Value(mysqldriver.Parse(dbtest.MySQL(t).With(t, map[string]string{"sql_mode": "'',character_set_client=gbk"})))(t)
	check.Is(t, check.ErrorOf(target.Connect(t.Context(), session.Need{Connections: 1})), session.ErrCharset)
}

// With several hosts each has less time, so that the last one has its turn within 4 s.
func TestTimeoutOf(t *testing.T) {
	t.Parallel()
	for hosts, want := range map[int]time.Duration{
		1: session.OpenTimeout, 2: session.HostTimeout, 3: session.HostTimeout, 5: time.Second,
	} {
		if got := session.TimeoutOf(hosts); got != want {
			t.Errorf("%d hosts: %v", hosts, got)
		}
	}
}

// What reads the DSN by pgx, as package notify does, connects as lib/pq does: that requires TLS, and pgx prefers it.
func TestSourceOfPq(t *testing.T) {
	for _, test := range [][3]string{ // $PGSSLMODE, the DSN, what is used
		{"", "postgres://u@h/db", "postgres://u@h/db?sslmode=require"},
		{"prefer", "postgres://u@h/db?connect_timeout=3", "postgres://u@h/db?connect_timeout=3&sslmode=prefer"},
		{"", "host=h,i user=u dbname=db", "target_session_attrs=primary sslmode=require host=h,i user=u dbname=db"},
		{"", "host=h user=u sslmode=disable", "host=h user=u sslmode=disable"},
	} {
		t.Setenv("PGSSLMODE", test[0])
		if test[0] == "" {
			_ = os.Unsetenv("PGSSLMODE") // an empty one is an error of lib/pq
		}
		target, err := pqdriver.Parse(test[1])
		if err != nil || target.Source != test[2] {
			t.Errorf("%s: %s, error %v", test[1], target.Source, err)
		}
	}
}
