package servers_test

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// urlOf returns the DSN of a database as a URL.
func urlOf(t *testing.T, dsn string) *url.URL {
	t.Helper()
	if strings.Contains(dsn, "://") {
		return check.Value(url.Parse(dsn))(t)
	}
	config := check.Value(mysql.ParseDSN(dsn))(t)
	return &url.URL{Scheme: "mysql", User: url.UserPassword(config.User, config.Passwd), Host: config.Addr, Path: config.DBName}
}

// What is wrong with a DSN stands on the first line of the error of Open, with what to try. The driver's error is
// wrapped, and its text follows.
func TestErrors_OfOpen(t *testing.T) {
	t.Parallel()
	for _, o := range onServers(t) {
		dsn := urlOf(t, o.database(t).DSN)
		for cause, change := range map[string]func(u *url.URL){
			"the server refuses the user or the password":             func(u *url.URL) { u.User = url.UserPassword("sqllock_nobody", "geheim") },
			"the server has no such database":                         func(u *url.URL) { u.Path = "/sqllock_nothing" },
			"the connection is refused: nothing listens there":        func(u *url.URL) { u.Host = "127.0.0.1:1" },
			"the host is unknown":                                     func(u *url.URL) { u.Host = "sqllock.invalid" },
			`the server does not know a parameter of the DSN, "sqll"`: func(u *url.URL) { u.RawQuery += "&sqll=1" },
		} {
			t.Run(o.name+": "+cause, func(t *testing.T) {
				t.Parallel()
				u := *dsn
				change(&u)
				_, err := o.open(t.Context(), u.String(), openOptions{})
				hasCure(t, err, cause)
			})
		}
	}
}

// During a failover the hosts of a DSN answer differently: one is gone, and the others are standbys.
func TestErrors_NoHostTakesWrites(t *testing.T) {
	t.Parallel()
	u := urlOf(t, dbtest.Postgres(t).DSN)
	var parameters strings.Builder
	for name, values := range u.Query() {
		fmt.Fprintf(&parameters, " %s='%s'", name, values[0])
	}
	dsn := fmt.Sprintf("host=127.0.0.1,%s port=1,%s user=%s dbname=%s target_session_attrs=read-write default_transaction_read_only=on%s",
		u.Hostname(), u.Port(), u.User.Username(), strings.TrimPrefix(u.Path, "/"), &parameters)
	for _, name := range []string{"pgxlock", "pqlock"} {
		hasCure(t, check.ErrorOf(byName(t, name).open(t.Context(), dsn, openOptions{})), "no host of the DSN takes writes now")
	}
}

// PgBouncer gives all that it refuses one code, which PostgreSQL has for broken connections.
// It takes poolers of its own.
func TestOpen_RefusedByPgBouncer(t *testing.T) {
	t.Parallel()
	dbtest.OwnServers(t)
	behind := dbtest.Postgres(t).DSN
	for setting, c := range map[string]struct {
		parameters, cause string
		uses              bool // a connection is in use
	}{
		"pool_mode = transaction": {"&work_mem=64", "the server does not know a parameter of the DSN", false},
		"pool_mode = statement":   {"", "PgBouncer has no transactions in this mode", false},
		"max_client_conn = 1":     {"", "the server has no connection left", true},
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			scratch := check.Value(server.NewScratch())(t)
			t.Cleanup(func() { must(t, scratch.Remove()) })
			pooler := check.Value(server.StartPgBouncerWith(t.Context(), filepath.Join(scratch.Dir, "pooler"), behind, setting))(t)
			t.Cleanup(func() { must(t, pooler.Kill()) })
			if c.uses {
				used := check.Value(sqlx.Open("pgx", pooler.DSN()))(t)
				defer func() { must(t, used.Close()) }()
				for used.PingContext(t.Context()) != nil { // that of the start may not have ended yet
					time.Sleep(time.Millisecond)
				}
			}
			for _, name := range []string{"pgxlock", "pqlock"} {
				began := time.Now()
				hasCure(t, check.ErrorOf(byName(t, name).open(t.Context(), pooler.DSN()+c.parameters, openOptions{})), c.cause)
				t.Logf("%s: after %v", name, time.Since(began))
			}
		})
	}
}

func hasCure(t *testing.T, err error, cause string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	first, rest, _ := strings.Cut(err.Error(), "\n")
	cure := failure.CureOf(err)
	if !errors.Is(err, sqllock.ErrDatabase) || cure == nil || !strings.HasSuffix(first, ": "+cause+": "+cure.Text) || rest == "" || strings.Contains(err.Error(), "geheim") {
		t.Errorf("want an error about %q: %v", cause, err)
	}
}

// A user without rights is told so.
func TestErrors_OfRights(t *testing.T) {
	t.Parallel()
	databases{"PostgreSQL": dbtest.Postgres, "MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL}.migrated(t, func(t *testing.T, db *dbtest.DB) {
		newUser, grant := withMySQLUser, "GRANT SELECT ON app.* TO 'app'@'%'"
		if db.Name == "postgres" {
			newUser, grant = withPostgresUser, "GRANT USAGE ON SCHEMA public TO app"
		}
		dsn, _, names := newUser(t, db, "app")
		db.DB.MustExecContext(t.Context(), names.Replace(grant))
		r, err := sqllock.NewRepository(unhurried(t), db.OpenDSN(t, db.Driver, dsn).DB, db.Dialect, nil)
		if err == nil { // MySQL's user may read
			_, err = r.Acquire(t.Context(), "k", "holder", time.Minute)
		}
		hasCure(t, err, "the user lacks a right")
	})
}

// What the test servers do not say: their PostgreSQL trusts each password, and none of them is full.
func TestErrors_Codes(t *testing.T) {
	t.Parallel()
	for err, cause := range map[error]string{
		&pgconn.PgError{Code: "28P01"}:  "the server refuses the user or the password",
		&pq.Error{Code: "28P01"}:        "the server refuses the user or the password",
		&mysql.MySQLError{Number: 3159}: "the server wants TLS, or has no rule for this user and host",
		&pgconn.PgError{Code: "53300"}:  "the server has no connection left",
		&mysql.MySQLError{Number: 1040}: "the server has no connection left",
		&pgconn.PgError{Code: "08006"}:  "the connection broke",
		&pgconn.PgError{Code: "25P03"}:  "the server has ended the transaction: it was idle, or open, for too long",
		mysql.ErrInvalidConn:            "the connection broke",

		&pgconn.PgError{Code: "08P01", Message: "bouncer config error"}:                                                "the server has no such database",
		&pq.Error{Code: "08P01", Message: "no such database: app"}:                                                     "the server has no such database",
		&pq.Error{Code: "08P01", Message: "unsupported startup parameter: work_mem"}:                                   "the server does not know a parameter of the DSN",
		&pgconn.PgError{Code: "08P01", Message: "no more connections allowed (max_client_conn)"}:                       "the server has no connection left",
		&pgconn.PgError{Code: "08P01", Message: "query_wait_timeout"}:                                                  "the server has no connection left",
		&pgconn.PgError{Code: "08P01", Message: "transaction blocks not allowed in statement pooling mode"}:            "PgBouncer has no transactions in this mode",
		&pgconn.PgError{Code: "08P01", Message: "server login has been failing, try again later (server_login_retry)"}: "PgBouncer cannot connect to the server",
		pq.ErrSSLNotSupported:               "the server has no TLS",
		errors.New("dial tcp: i/o timeout"): "the server cannot be reached",
		&pgconn.PgError{Code: "57P03"}:      "the server is starting or stopping",
	} {
		if cured := failure.WithCure(err); !strings.HasPrefix(cured.Error(), cause+": ") || !strings.HasSuffix(cured.Error(), "\n"+err.Error()) || !errors.Is(cured, err) {
			t.Errorf("%v: %v", err, cured)
		}
	}
	for _, err := range []error{errors.New("x"), &pgconn.PgError{Code: "40001"}, &pgconn.PgError{Code: "08P01", Message: "protocol violation"}, &mysql.MySQLError{Number: 1213, Message: "Deadlock"}} {
		if cured := failure.WithCure(err); cured != err { //nolint:errorlint // it is to be the same
			t.Errorf("%v", cured)
		}
	}
}

// A DSN that is empty or of another database is told apart, and not shown.
func TestErrors_OfOtherDSNs(t *testing.T) {
	t.Parallel()
	postgres, keywords, mysqlURL, form, sqlite := "postgres://app:geheim@h/db", "host=h password=geheim dbname=db", "mysql://app:geheim@h/db", "app:geheim@tcp(h)/db", "sqlite:x.db"
	for name, want := range map[string]map[string]string{
		"pgxlock":    {mysqlURL: "this is a MySQL DSN: use mysqllock.Open", form: "use mysqllock.Open", sqlite: "this is an SQLite DSN: use sqlitelock.Open"},
		"pqlock":     {mysqlURL: "use mysqllock.Open", form: "use mysqllock.Open", sqlite: "use sqlitelock.Open"},
		"mysqllock":  {postgres: "this is a PostgreSQL DSN: use pgxlock.Open or pqlock.Open", keywords: "use pgxlock.Open", sqlite: "use sqlitelock.Open"},
		"sqlitelock": {postgres: "use pgxlock.Open", keywords: "use pgxlock.Open", mysqlURL: "use mysqllock.Open", form: "use mysqllock.Open"},
	} {
		want[""] = "the DSN is empty: set DATABASE_URL"
		for dsn, text := range want {
			_, err := byName(t, name).open(t.Context(), dsn, openOptions{})
			if !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("%s: %q: %v", name, dsn, err)
			}
		}
	}
}
