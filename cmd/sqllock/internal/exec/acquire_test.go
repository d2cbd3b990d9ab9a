//go:build unix

package exec

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/leasefile"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
	"github.com/sqllock/sqllock/internal/test/virtual"
)

// tableLocks are statements of each server that lock the table of locks, and end that. Behind the first only writes
// wait, as behind FLUSH TABLES WITH READ LOCK; behind the second reads, too.
var tableLocks = map[string]struct{ write, all, end string }{
	"postgres": {"BEGIN; LOCK TABLE INT_LOCK IN SHARE MODE", "BEGIN; LOCK TABLE INT_LOCK", "ROLLBACK"},
	"mysql":    {"LOCK TABLES INT_LOCK READ", "LOCK TABLES INT_LOCK WRITE", "UNLOCK TABLES"},
}

// servers are the databases that have locks of tables.
var servers = dbtest.Databases{"PostgreSQL": dbtest.Postgres, "MariaDB": dbtest.MySQL, "Oracle's MySQL": dbtest.OracleMySQL}

// lockTable locks the table of locks until the function is called that it returns.
func lockTable(t *testing.T, db *dbtest.DB, reads bool) (unlock func()) {
	t.Helper()
	locks := tableLocks[sqltext.Of(db.Dialect).Name]
	conn := check.Value(db.DB.Connx(t.Context()))(t)
	t.Cleanup(func() { conn.Close() })
	statement := locks.write
	if reads {
		statement = locks.all
	}
	check.Must(t, check.ErrorOf(conn.ExecContext(t.Context(), statement)))
	return func() { check.Must(t, check.ErrorOf(conn.ExecContext(t.Context(), locks.end))) }
}

// TestExecLeavesNoRowBehind ends the wait of an exec whose statement waits for the table. When the table is
// unlocked, the server does not write the row of the process that has gone.
func TestExecLeavesNoRowBehind(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	servers.Each(t, func(t *testing.T, db *dbtest.DB) {
		repository := migrated(t, db)
		unlock := lockTable(t, db, false)
		wait := time.Second
		for !timesOutInTheServer(t, db, wait) {
			wait *= 2 // the machine was too slow
		}
		unlock()
		eventually(t, "the server has no statement of exec", func() bool { return running(t, db.DB) == 0 })
		if row, ok, err := repository.Peek(t.Context(), "nightly"); ok || err != nil {
			t.Errorf("the row %+v is left, %v", row, err)
		}
	})
}

// timesOutInTheServer runs an exec until its wait ends. It reports whether the server has had a
// statement of it that waits for the table.
func timesOutInTheServer(t *testing.T, db *dbtest.DB, wait time.Duration) (had bool) {
	t.Helper()
	p := program.Start(t, db.DSN, "exec", "--wait", wait.String(), "--ttl", "1h", "nightly", "--", "echo", "never")
	ended := make(chan int, 1)
	go func() { ended <- p.Code() }()
	eventually(t, "exec ends", func() bool {
		had = had || blocked(t, db.DB) > 0
		select {
		case code := <-ended:
			if code != exit.NotAcquired && code != exit.Database {
				t.Errorf("exit code %d; stderr: %s", code, p.Stderr.Rest())
			}
			return true
		default:
			return false
		}
	})
	return had
}

// blocked returns how many statements wait for the table of locks.
func blocked(t *testing.T, db *sqlx.DB) (n int) {
	t.Helper()
	query := "SELECT count(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND STATE LIKE 'Waiting for table%'"
	if db.DriverName() == "pgx" || db.DriverName() == "postgres" {
		query = "SELECT count(*) FROM pg_locks WHERE relation = 'int_lock'::regclass AND NOT granted"
	}
	check.Must(t, db.GetContext(t.Context(), &n, query))
	return n
}

// running returns how many statements for the table of locks a server executes for others in this database.
func running(t *testing.T, db *sqlx.DB) (n int) {
	t.Helper()
	query := "SELECT count(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND COMMAND NOT IN ('Sleep', 'Daemon') AND ID <> CONNECTION_ID()"
	if db.DriverName() == "pgx" || db.DriverName() == "postgres" {
		query = "SELECT count(*) FROM pg_locks WHERE relation = 'int_lock'::regclass AND pid <> pg_backend_pid()"
	}
	check.Must(t, db.GetContext(t.Context(), &n, query))
	return n
}

// TestExecLimitsItsStart has exec wait for the table when it inspects it. That counts as waiting for the lock, but
// for the time that a database has in any case.
func TestExecLimitsItsStart(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	servers.Each(t, func(t *testing.T, db *dbtest.DB) {
		migrated(t, db)
		defer lockTable(t, db, true)()
		for flags, limit := range map[string]string{"-n": "3s", "--wait=1": "3s", "--wait=4s": "4s"} {
			p := program.Start(t, db.DSN, "exec", flags, "-v", "nightly", "--", "echo", "never")
			p.WantCode(exit.Database)
			program.Contains(t, p.Stderr.Rest(), "sqllock: database error: the database has not answered "+limit+" after the start")
		}
	})
}

// TestAShortWait has waited for longer than it may when it is connected. It tries once: a free lock is acquired,
// and one that is held is no failure of the database.
func TestAShortWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		repository := inVirtualTime(t)
		for _, want := range []error{nil, sqllock.ErrNotAcquired} {
			h := &holding{registry: check.Value(sqllock.NewRegistry(repository, nil))(t)}
			defer h.registry.Close(t.Context())
			x := &execution{wanted: wanted{key: "nightly"}, began: time.Now().Add(-2 * time.Second), wait: time.Second, stderr: io.Discard}
			err := x.lock(t.Context(), h)
			check.Is(t, err, want)
			check.IsNot(t, err, sqllock.ErrDatabase)
		}
	})
}

// TestTheLimitEndsALease has the time for a try end when it has just acquired. The lock is released, whatever its
// minimum hold.
func TestTheLimitEndsALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		repository := inVirtualTime(t)
		h := &holding{registry: check.Value(sqllock.NewRegistry(repository, nil))(t)}
		x := &execution{wanted: wanted{key: "nightly"}, began: time.Now(), ttl: time.Minute, minHold: time.Minute, stderr: io.Discard}
		late := check.Value(x.claim(h.registry))(t)
		lockFor := late.lockFor
		late.lockFor = func(ctx context.Context, wait time.Duration) (*sqllock.Lease, error) {
			lease, err := lockFor(ctx, wait)
			<-ctx.Done()
			return lease, err
		}
		check.Is(t, x.tryOnce(t.Context(), h, late), sqllock.ErrDatabase)
		if row, ok, err := repository.Peek(t.Context(), "nightly"); ok || err != nil {
			t.Errorf("the row %+v is left, %v", row, err)
		}
	})
}

// TestNoFileOfADeadLease has the lease end before acquire writes the file, as in a process that was stopped.
func TestNoFileOfADeadLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path, flags := filepath.Join(t.TempDir(), "lease"), &connect.Flags{}
		x := &execution{flags: flags, wanted: wanted{key: "nightly"}, began: time.Now(), ttl: time.Second, stderr: io.Discard, stdout: io.Discard}
		registry := check.Value(sqllock.NewRegistry(inVirtualTime(t), &sqllock.RegistryOptions{TTL: x.ttl, NoRenew: true}))(t)
		h := &holding{registry: registry, connection: &connect.Connection{Name: "test"}}
		defer registry.Close(t.Context())
		check.Must(t, x.lock(t.Context(), h))
		draft := check.Value(leasefile.NewDraft(t.Context(), path, x.stdout, flags))(t)
		time.Sleep(x.ttl)
		err := (&acquisition{execution: x, path: path}).leave(t.Context(), h, draft, nil)
		check.Is(t, err, sqllock.ErrLockLost)
		check.Contains(t, err.Error(), `the lease of "nightly" ended `)
		check.Equal(t, "hint", exit.Hint(err), "a longer --ttl")
		check.Equal(t, "exit code", exit.CodeOf(err), exit.LockLost)
		_, err = os.Stat(path)
		check.Is(t, err, fs.ErrNotExist)
	})
}

func inVirtualTime(t *testing.T) *sqllock.Repository {
	t.Helper()
	db := virtual.Migrated(t, dialect.Spring7)
	return check.Value(sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, nil))(t)
}
