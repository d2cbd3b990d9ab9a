package mysqldriver

import (
	"errors"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// Whatever the DSN calls it, autocommit is on.
func TestAutocommit(t *testing.T) {
	t.Parallel()
	for name, same := range map[string]bool{
		"autocommit": true, "AUTOCOMMIT": true, "@@autocommit": true, "session autocommit": true, "@@session.autocommit": true,
		"@@SESSION . autocommit": true, "local autocommit": true, "autocommitted": false, "my_autocommit": false,
	} {
		parameters := map[string]string{name: "0"}
		complete(parameters)
		if _, kept := parameters[name]; !strings.HasPrefix(parameters["autocommit"], "1 ") || kept == same && name != "autocommit" {
			t.Errorf("%s: %v", name, parameters)
		}
	}
}

// A server notices a client that is gone whatever else the DSN sets, as docs/pool.md says, and the DSN's own limit stays.
func TestIdleLimits(t *testing.T) {
	t.Parallel()
	const mariaDB, oracle = "idle_transaction_timeout = 10", "wait_timeout = 60"
	for parameter, want := range map[string][2]bool{
		"sort_buffer_size": {true, true}, rowWait: {true, true}, "idle_transaction_timeout": {false, true}, "WAIT_TIMEOUT": {true, false},
	} {
		config := mysql.NewConfig()
		config.Params = map[string]string{parameter: "33"}
		check.Value(connectorOf(config, session.Settings{}))(t)
		check.Equal(t, parameter, config.Params[parameter], "33")
		set := strings.Join(slices.Collect(maps.Values(config.Params)), ", ")
		if got := [2]bool{strings.Contains(set, mariaDB), strings.Contains(set, oracle)}; got != want {
			t.Errorf("with %s of the DSN: %s", parameter, set)
		}
	}
}

// Sessions are SERIALIZABLE, unless the DSN says what they are.
func TestSerializablePool(t *testing.T) {
	t.Parallel()
	for parameters, want := range map[string]bool{
		"": true, "?timeout=1s": true, "?tx_isolation='READ-COMMITTED'": false, "?transaction_isolation='READ-COMMITTED'": false,
	} {
		target, err := Parse("app:secret@tcp(db:3306)/app" + parameters)
		if err != nil || target.SerializablePool != want {
			t.Errorf("%s: %t, %v", parameters, target.SerializablePool, err)
		}
	}
}

// TestSocketInAnotherDirectory connects by a relative path of a socket from another directory. It changes the
// directory of the process, so it runs alone.
func TestSocketInAnotherDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	listener := check.Value(new(net.ListenConfig).Listen(t.Context(), "unix", "s"))(t)
	defer listener.Close()
	target := check.Value(Parse("user@unix(s)/db"))(t)
	connector := check.Value(target.Connector(target.Source, session.Settings{}))(t)
	t.Chdir(t.TempDir())
	go func() {
		if conn, err := listener.Accept(); err == nil {
			conn.Close()
		}
	}()
	if _, err := connector.Connect(t.Context()); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("connect: %v", err)
	}
}

// Dolt executes comments for MariaDB. Its sessions get no variable that is known to that alone.
func TestNotMariaDB(t *testing.T) {
	t.Parallel()
	for notMariaDB, want := range map[bool]int{false: 3, true: 0} {
		config := mysql.NewConfig()
		check.Value(connectorOf(config, session.Settings{Serializable: true, NotMariaDB: notMariaDB}))(t)
		sent := ""
		for _, value := range config.Params {
			sent += value
		}
		check.Equal(t, "comments in "+sent, strings.Count(sent, "/*M!"), want)
		check.Equal(t, "comments for MySQL in "+sent, strings.Count(sent, "/*!80000"), 1)
	}
}

// MySQL Router refuses several statements in a message where clients share sessions. Any other error says nothing about that.
func TestTakesMessages(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		refusal error
		charset string
		takes   bool
		want    error
	}{
		"a server":        {nil, "utf8mb4", true, nil},
		"another charset": {nil, "gbk", false, session.ErrCharset},
		"a Router":        {&mysql.MySQLError{Number: 4501}, "utf8mb4", false, nil},
		"both":            {&mysql.MySQLError{Number: 4501}, "gbk", false, session.ErrCharset},
		"an error":        {gone, "", false, gone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, mock, err := sqlmock.New()
			check.Must(t, err)
			charset := func() *sqlmock.Rows { return sqlmock.NewRows([]string{"charset"}).AddRow(c.charset) }
			together := mock.ExpectQuery("SELECT @@character_set_client; SELECT 1")
			if c.refusal != nil {
				together.WillReturnError(c.refusal)
			} else {
				together.WillReturnRows(charset())
			}
			if c.refusal != nil && !errors.Is(c.want, gone) {
				mock.ExpectQuery("SELECT @@character_set_client$").WillReturnRows(charset())
			}
			takes, err := takesMessages(t.Context(), db)
			check.Equal(t, "takes them", takes, c.takes)
			check.Is(t, err, c.want)
			mock.ExpectClose()
			check.Must(t, db.Close())
			check.Must(t, mock.ExpectationsWereMet())
		})
	}
}
