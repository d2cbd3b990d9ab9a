package connect

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/program"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// writeLocked creates an SQLite file that another connection is writing to, like a process
// that opens the default database at the same time. The file is not in WAL mode yet.
// unlock commits.
func writeLocked(t *testing.T) (path string, unlock func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "locks.db")
	db := check.Value(sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=journal_mode(DELETE)"))(t)
	t.Cleanup(func() { db.Close() })
	conn := check.Value(db.Conn(t.Context()))(t)
	for _, statement := range []string{"CREATE TABLE other (n INTEGER)", "BEGIN IMMEDIATE", "INSERT INTO other VALUES (1)"} {
		check.Must(t, check.ErrorOf(conn.ExecContext(t.Context(), statement)))
	}
	return path, func() {
		check.Is(t, check.ErrorOf(conn.ExecContext(t.Context(), "COMMIT")), nil)
		conn.Close()
	}
}

// TestOpenWaitsForSQLite opens a file while another connection writes to it. The busy timeout
// does not apply to the switch to WAL.
func TestOpenWaitsForSQLite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path, unlock := writeLocked(t)
		opened := make(chan error, 1)
		go func() {
			c, err := (&Flags{DSN: "sqlite:" + path, Prefix: "INT_"}).Open(t.Context(), MustExist)
			if err == nil {
				c.Close()
			}
			opened <- err
		}()
		time.Sleep(session.OpenTimeout / 2)
		select {
		case err := <-opened:
			t.Errorf("Open returned while another connection wrote: %v", err)
			unlock()
		default:
			unlock()
			check.Is(t, <-opened, nil)
		}
	})
}

// TestOpenSQLiteTimesOut checks the error for a file that stays locked.
func TestOpenSQLiteTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path, unlock := writeLocked(t)
		defer unlock()
		began := time.Now()
		_, err := (&Flags{DSN: "sqlite:" + path, Prefix: "INT_"}).Open(t.Context(), MustExist)
		if took := time.Since(began); exit.CodeOf(err) != exit.Database || took < session.OpenTimeout || took > session.OpenTimeout+time.Second {
			t.Errorf("%v after %v", err, took)
		} else {
			program.Contains(t, exit.Text(err), "no answer within 10s", "database is locked")
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if _, err := (&Flags{DSN: "sqlite:" + path, Prefix: "INT_"}).Open(ctx, MustExist); err == nil || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestHintForAPinnedRow(t *testing.T) {
	t.Parallel()
	check.Contains(t, Hint(fmt.Errorf("%w: release", sqllock.ErrPinned)), "sqllock describe KEY names its session")
}

func TestDefaultFileIsInStateDirectory(t *testing.T) {
	directory := t.TempDir()
	t.Setenv("XDG_STATE_HOME", directory)
	t.Setenv(DSNVariable, "postgres://other")
	chosen, isDefault, err := (&Flags{Local: true}).chosenDSN()
	check.Must(t, err)
	if want := "sqlite:" + filepath.Join(directory, "sqllock", "sqllock.db"); chosen != want || !isDefault {
		t.Errorf("got %q, default %v, want %q", chosen, isDefault, want)
	}
}

// Where several members of a replication group accept writes the command acquires in READ COMMITTED.
func TestRepositoryWhereSerializableIsRefused(t *testing.T) {
	t.Parallel()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherRegexp))
	check.Must(t, err)
	defer db.Close()
	for range 2 { // the second time with another isolation
		columns := sqlmock.NewRows([]string{"version", "session", "LOCK_KEY", "REGION", "CLIENT_ID", "CREATED_DATE", "EXPIRED_AFTER"})
		mock.ExpectQuery("SELECT server.version").WillReturnRows(columns.AddRow("9.7.4", "", nil, nil, nil, nil, nil))
		mock.ExpectQuery("information_schema").WillReturnRows(sqlmock.NewRows([]string{"relation", "fact", "name", "text", "flags", "more", "cure"}))
		mock.ExpectQuery("INT_LOCK_FENCE").WillReturnRows(sqlmock.NewRows([]string{"FENCE"}))
		mock.ExpectQuery("replication_group_members").WillReturnRows(sqlmock.NewRows([]string{"name", "value"}).
			AddRow("group_replication_group_name", "aaaa").AddRow("group_replication_enforce_update_everywhere_checks", "ON").AddRow("member_state", "ONLINE"))
	}
	c := &Connection{DB: sqlx.NewDb(db, "sqlmock"), Dialect: dialect.MySQL(), pools: new(session.Pools)}
	check.Must(t, check.ErrorOf((&Flags{Prefix: "INT_", Region: "DEFAULT"}).Repository(t.Context(), c, sqllock.RepositoryOptions{})))
	check.Is(t, mock.ExpectationsWereMet(), nil)
}
