//go:build linux

package reliability

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
)

// A diskCell is a server of which something is on a small disk.
type diskCell struct {
	name, driver string
	kind         string // one of [server.Kinds]
	dialect      dialect.Dialect
	megabytes    int // of the disk
	// start starts the server, whose directory is home; small is the small disk. It is nil
	// for SQLite, whose file is there.
	start func(ctx context.Context, home, small string) (*server.Server, error)
	// says matches an error of an acquisition that the full disk has caused, if the disk is full.
	says *regexp.Regexp
	// provoke are statements for which a server needs room, and worsen those that are sent when it has noticed.
	provoke, worsen []string
}

var (
	noSpace = regexp.MustCompile(`(?i)no space left on device|the table '[^']*' is full|disk is full|disk full`)
	// away is a server that waits for room, or has ended: nothing that it could say arrives.
	away = regexp.MustCompile(`(?i)does not answer|starting or stopping|connection is refused|connection broke|bad connection`)
)

var diskCells = []diskCell{
	{
		"PostgreSQL, data", "pgx", server.Postgres, dialect.Postgres(), 96, startBy(server.DurablePostgres, func(r server.Recipe, home, small string) (server.Recipe, string) {
			return withWAL(r, filepath.Join(home, "wal")), filepath.Join(small, "server")
		}), noSpace, nil, []string{"CHECKPOINT"},
	},
	{
		"PostgreSQL, WAL", "postgres", server.Postgres, dialect.Postgres(), 64, startBy(server.DurablePostgres, func(r server.Recipe, home, small string) (server.Recipe, string) {
			return withWAL(r, filepath.Join(small, "wal")), filepath.Join(home, "server")
		}), away, []string{"SELECT pg_switch_wal()"}, nil,
	},
	{
		"MariaDB, data", "mysql", server.MySQL, dialect.MySQL(), 192, startBy(server.DurableMariaDB, func(r server.Recipe, _, small string) (server.Recipe, string) {
			return r, filepath.Join(small, "server")
		}), noSpace, nil, nil,
	},
	{
		"MariaDB, binlog", "mysql", server.MySQL, dialect.MySQL(), 16, startBy(server.DurableMariaDB, func(r server.Recipe, home, small string) (server.Recipe, string) {
			return r.With("--log-bin="+filepath.Join(small, "binlog"), "--sync-binlog=1", "--server-id=1"), filepath.Join(home, "server")
		}), away, nil, nil,
	},
	{
		"MySQL, data and binlog", "mysql", server.OracleMySQL, dialect.MySQL(), 384, startBy(server.DurableOracleMySQL, func(r server.Recipe, _, small string) (server.Recipe, string) {
			return r, filepath.Join(small, "server")
		}), regexp.MustCompile(noSpace.String() + "|" + away.String()), nil, nil,
	},
	{"SQLite", "sqlite", server.SQLite, dialect.SQLite(), 16, nil, noSpace, nil, nil},
}

// startBy starts a server by a recipe, which place completes; it also says where the server's directory is.
func startBy(recipe func(context.Context) (server.Recipe, error), place func(r server.Recipe, home, small string) (server.Recipe, string)) func(context.Context, string, string) (*server.Server, error) {
	return func(ctx context.Context, home, small string) (*server.Server, error) {
		r, err := recipe(ctx)
		if err != nil {
			return nil, err
		}
		r, dir := place(r, home, small)
		return server.Start(ctx, r, dir)
	}
}

// withWAL has PostgreSQL write its log to a directory of its own, and use little of it.
func withWAL(r server.Recipe, dir string) server.Recipe {
	create := r.Create
	r.Create = func(home string) []string { return append(create(home), "--waldir="+dir) }
	return r.With("-c", "max_wal_size=32MB", "-c", "min_wal_size=32MB")
}

// fullDiskTTL is the time-to-live of the processes' leases.
// real time: the checker judges what was held, whether or not leases end early.
const fullDiskTTL = 3 * time.Second

// TestFullDisk has processes compete for locks of all kinds while a disk of the server is full for some
// time-to-lives, and judges what they did. Leases end in time, errors are those of a database, and when there is
// room again all goes on. A server that has ended is started again, as an init does. It takes a minute and a half:
// MariaDB and MySQL look for room once a minute.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, c := range diskCells {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

func (c diskCell) run(t *testing.T) {
	t.Helper()
	home, disk := scratch(t), newDisk(t, c.megabytes)
	dsn := virtualsqlite.DSN(filepath.Join(disk.dir, "locks.db"))
	var s *server.Server
	if c.start != nil {
		must(t, os.Chmod(home, 0o777)) //nolint:gosec // for the account of the server
		var err error
		s, err = c.start(t.Context(), home, disk.dir)
		if errors.Is(err, server.ErrMissing) && !check.Value(server.Required(c.kind))(t) {
			t.Skipf("SKIPPED, NOT TESTED: %v", err)
		}
		must(t, err)
		t.Cleanup(func() { _ = s.Kill() })
		dsn = s.DSN()
	}
	target := workload.Target{Driver: c.driver, DSNs: []string{dsn}}
	must(t, workload.Prepare(t.Context(), target))
	config := workload.Standard(target, rand.Uint64(), t.TempDir()) //nolint:gosec // not a secret
	config.TTL, config.MaxHold, config.Stay = fullDiskTTL, 2*fullDiskTTL, fullDiskTTL/3
	config.Processes, config.Kill, config.Fair = 4, false, c.start != nil
	f := startFleet(t, config)
	f.work()
	for range size(1, 3) {
		db := open(t, c.driver, dsn, 4)
		disk.fill(t)
		c.fails(t, db, disk)
		disk.free(t)
		f.resumes(s)
	}
	f.end(target)
}

// resumes waits until each lock has been acquired again, and starts a server that has ended.
func (f *fleet) resumes(s *server.Server) {
	f.t.Helper()
	since := history.Now()
	for limit := time.Now().Add(promptly); ; {
		if s != nil && s.HasEnded() {
			f.t.Log("the server had ended")
			must(f.t, s.Restart(f.t.Context()))
		}
		missing := f.AwaitAll(f.t.Context(), since, time.Second)
		if len(missing) == 0 {
			return
		}
		if time.Now().After(limit) {
			f.t.Fatalf("nobody acquires %q", missing)
		}
	}
}

// fails acquires many locks until an error says that the disk is full, and for some time-to-lives after that.
func (c diskCell) fails(t *testing.T, db *sqlx.DB, disk *disk) {
	t.Helper()
	said := make(map[string]int)
	var repository *sqllock.Repository
	limit, until := time.Now().Add(promptly), time.Time{}
	for n := 0; until.IsZero() || time.Now().Before(until); n++ {
		if time.Now().After(limit) {
			t.Fatalf("a full disk is not noticed: %v", said)
		}
		disk.fill(t)
		send(t, db, c.provoke)
		var err error
		if repository == nil {
			repository, err = sqllock.NewRepository(t.Context(), db.DB, c.dialect, nil)
		} else {
			err = acquireMany(t, repository, n)
		}
		if err != nil {
			if !errors.Is(err, sqllock.ErrDatabase) {
				t.Errorf("while the disk is full: %v", err)
			}
			said[keys.ReplaceAllString(err.Error(), "K")]++
		}
		if until.IsZero() && err != nil && c.says.MatchString(err.Error()) && disk.isFull(t) {
			// real time: for so long the disk stays full, and any number of calls may fail.
			until = time.Now().Add(3 * fullDiskTTL)
			send(t, db, c.worsen)
		}
		pause(t.Context(), 50*time.Millisecond)
	}
	for text, n := range said {
		t.Logf("%d times: %.300s", n, text)
	}
}

// keys are those that an error names.
var keys = regexp.MustCompile(`"\d+/.*" and \d+ more|"\d+/.*?"`)

// send sends statements that may fail.
func send(t *testing.T, db *sqlx.DB, statements []string) {
	t.Helper()
	// real time: the statements may fail.
	ctx, cancel := context.WithTimeout(t.Context(), fullDiskTTL)
	defer cancel()
	for _, statement := range statements {
		_, _ = db.ExecContext(ctx, statement) // the disk is full
	}
}

// acquireMany acquires some hundred new locks at once, whose rows need room. They expire.
func acquireMany(t *testing.T, repository *sqllock.Repository, n int) error {
	t.Helper()
	// real time: these leases are to expire: the rows are what matters.
	registry := check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: fullDiskTTL, NoRenew: true}))(t)
	keys := make([]string, 300)
	for i := range keys {
		keys[i] = strconv.Itoa(n) + "/" + strconv.Itoa(i)
	}
	lock := check.Value(registry.ObtainAll(keys...))(t)
	_, err := lock.TryLock(t.Context())
	return err
}

// A disk is a small one, in memory.
type disk struct{ dir, ballast string }

// newDisk mounts a disk, which is gone after the test.
func newDisk(t *testing.T, megabytes int) *disk {
	t.Helper()
	dir := filepath.Join(scratch(t), "disk")
	must(t, os.Mkdir(dir, 0o700))
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=1777,size="+strconv.Itoa(megabytes)+"m")
	if errors.Is(err, os.ErrPermission) && os.Getenv("CI") != "true" {
		t.Skipf("SKIPPED, NOT TESTED: a full disk: only root can mount one: %v", err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return &disk{dir, filepath.Join(dir, "ballast")}
}

// fill takes all room that is left. It may be called again.
func (d *disk) fill(t *testing.T) {
	t.Helper()
	file := check.Value(os.OpenFile(d.ballast, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(t)
	defer file.Close()
	for part := make([]byte, 1<<20); len(part) > 0; {
		if n, err := file.Write(part); err != nil || n < len(part) {
			if err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			part = part[:len(part)/2]
		}
	}
}

// isFull reports whether there is no room left: a server may have given some back since [disk.fill].
func (d *disk) isFull(t *testing.T) bool {
	t.Helper()
	var room syscall.Statfs_t
	must(t, syscall.Statfs(d.dir, &room))
	return room.Bavail == 0
}

// free gives the room back.
func (d *disk) free(t *testing.T) {
	t.Helper()
	must(t, os.Remove(d.ballast))
}
