package session_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/test/check"
)

// An engine that only speaks the protocol may refuse the settings of a session, without a word about what it is. So it
// is asked. The answers of Dolt and H2 are those of the real ones.
func TestConnect_EngineThatRefusesSettings(t *testing.T) {
	t.Parallel()
	unknown := &mysql.MySQLError{Number: 1105, Message: `column "idle_transaction_timeout" could not be found in any table in scope`}
	for name, c := range map[string]struct {
		dialect    dialect.Dialect
		err        error
		server     string
		unverified bool
		named      bool
	}{
		"Dolt":                 {dialect.MySQL(), unknown, "8.0.33 Dolt", false, true},
		"a variable":           {dialect.MySQL(), &mysql.MySQLError{Number: 1193, Message: "Unknown system variable 'x'"}, "8.0.33 Dolt", false, true},
		"H2":                   {dialect.Postgres(), sql.ErrNoRows, "PostgreSQL 8.2.23 server protocol using H2 2.4.240 (2025-09-22)", false, true},
		"Dolt, unverified":     {dialect.MySQL(), unknown, "8.0.33 Dolt", true, false},
		"one that is known":    {dialect.MySQL(), unknown, "9.7.4 MySQL Community Server - GPL", false, false},
		"a password":           {dialect.MySQL(), &mysql.MySQLError{Number: 1045, Message: "Access denied"}, "8.0.33 Dolt", false, false},
		"one that has no word": {dialect.MySQL(), unknown, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, mock, err := sqlmock.NewWithDSN(t.Name())
			check.Must(t, err)
			defer db.Close()
			if c.server != "" {
				mock.ExpectQuery("(?i)version").WillReturnRows(sqlmock.NewRows([]string{"version"}).AddRow(c.server))
			}
			target := session.Target{
				Driver: "sqlmock", Source: t.Name(),
				Connector: func(string, session.Settings) (driver.Connector, error) { return refusing{err: c.err}, nil },
			}
			target.Dialect = c.dialect
			_, err = target.Connect(t.Context(), session.Need{Connections: 2, Unverified: c.unverified})
			if named := errors.Is(err, sqllock.ErrInvalid); named != c.named || !named && !errors.Is(err, c.err) {
				t.Errorf("%v", err)
			}
			if (c.named || c.unverified) && !strings.Contains(err.Error(), c.server) {
				t.Errorf("it does not say what the server is: %v", err)
			}
		})
	}
}

// Dolt and go-mysql-server execute the comments for MariaDB and those for MySQL. If it is to be gone on with, they get
// the latter alone.
func TestConnect_EngineThatReadsAllComments(t *testing.T) {
	t.Parallel()
	db, mock, err := sqlmock.NewWithDSN(t.Name())
	check.Must(t, err)
	defer db.Close()
	mock.ExpectQuery("(?i)version").WillReturnRows(sqlmock.NewRows([]string{"version"}).AddRow("8.0.31 Dolt"))
	var sent []string
	target := session.Target{
		Driver: "sqlmock", Source: t.Name(),
		Connector: func(_ string, s session.Settings) (driver.Connector, error) {
			if s.Rewrite("/*M! MariaDB */") != "" {
				return refusing{err: &mysql.MySQLError{Number: 1105, Message: "Unknown system variable"}}, nil
			}
			return listening{sent: &sent}, nil
		},
	}
	target.Dialect = dialect.MySQL()
	pools := check.Value(target.Connect(t.Context(), session.Need{Connections: 2, Unverified: true}))(t)
	defer pools.Close()
	for _, pool := range []*sqlx.DB{pools.DB, pools.Turns} {
		check.Must(t, check.ErrorOf(pool.ExecContext(t.Context(), "/*M! SET STATEMENT a=1 FOR */ UPDATE t /*M!100600 JOIN\n u *//*!80000 FORCE INDEX */ SET n = 1")))
	}
	const want = " UPDATE t /*!80000 FORCE INDEX */ SET n = 1"
	check.Equal(t, "sent", strings.Join(sent, "\n"), want+"\n"+want)
}

// A listening server takes what is sent.
type listening struct{ sent *[]string }

func (l listening) Connect(context.Context) (driver.Conn, error) {
	return &heard{healthy{server: new(limited)}, l.sent}, nil
}

func (listening) Driver() driver.Driver { return nil }

type heard struct {
	healthy

	sent *[]string
}

func (h *heard) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	*h.sent = append(*h.sent, text)
	return driver.RowsAffected(1), nil
}

var registerUnreachable = sync.OnceFunc(func() { sql.Register("unreachable", unreachable{}) })

// The question may fail, or come too late. Then the first error says why there is no connection.
func TestConnect_EngineThatIsNotNamed(t *testing.T) {
	t.Parallel()
	registerUnreachable()
	for name, ended := range map[string]bool{"the second connection fails": false, "the context has ended": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := errors.New("the settings are refused")
			target := session.Target{
				Driver: "unreachable",
				Connector: func(string, session.Settings) (driver.Connector, error) {
					if ended {
						cancel()
					}
					return nil, first
				},
			}
			target.Dialect = dialect.Postgres()
			_, err := target.Connect(ctx, session.Need{Connections: 2})
			check.Is(t, err, first)
			if errors.Is(err, errUnreachable) || errors.Is(err, context.Canceled) {
				t.Errorf("it is about the question: %v", err)
			}
		})
	}
}

var errUnreachable = errors.New("unreachable")

// An unreachable driver connects to nothing.
type unreachable struct{}

func (unreachable) Open(string) (driver.Conn, error) { return nil, errUnreachable }
