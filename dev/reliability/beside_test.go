//go:build linux

package reliability

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/wire"
)

const (
	// besideTTL is the time-to-live of the leases beside others.
	// real time: the checker judges what was held, whether or not leases end early.
	besideTTL = 5 * time.Second
	// besideDelay is how much later the answers of the server come.
	besideDelay = 20 * time.Millisecond
)

// An other is a job that uses the table beside the locks, such as a backup. It runs again
// and again until the test ends.
type other struct {
	name string
	do   func(ctx context.Context) error
	done atomic.Int32
}

// TestBesideOthers has processes, half of them fair, compete for locks of all kinds over a slow network, and are
// killed and stopped. Meanwhile expired rows are deleted, a backup is made, a standby is read from, and indexes are
// built anew. It takes a minute, in which each of these is done once at least.
func TestBesideOthers(t *testing.T) {
	inParallel(t)
	each(t, servers[1:3:3], func(t *testing.T, _ int, c cell) { // pgx, and MariaDB
		primary, replica, err := c.pair(t.Context(), scratch(t))
		started(t, err, primary, replica)
		network, dsn := wire.Through(t, primary.DSN())
		network.Delay(besideDelay)
		target := workload.Target{Driver: c.driver, DSNs: []string{dsn}}
		must(t, workload.Prepare(t.Context(), target))
		config := workload.Standard(target, rand.Uint64(), t.TempDir()) //nolint:gosec // not a secret
		config.TTL, config.MaxHold, config.Stay, config.Fair = besideTTL, 2*besideTTL, besideTTL/5, true
		f := startFleet(t, config)
		f.work()
		others := c.others(t, primary, replica)
		stop := begin(t, others)
		f.work()
		enough := f.Acquisitions() + size(0, 3000)
		for limit := time.Now().Add(contentionEnd); leastDone(others) < size(1, 10) || f.Acquisitions() < enough; pause(t.Context(), 50*time.Millisecond) {
			if t.Failed() || time.Now().After(limit) {
				break
			}
		}
		stop()
		for _, one := range others {
			t.Logf("%s: %d times", one.name, one.done.Load())
		}
		if leastDone(others) == 0 {
			t.Error("one of the others did not get on")
		}
		if missing := f.AwaitAll(t.Context(), history.Now(), promptly); len(missing) > 0 {
			t.Errorf("nobody acquires %q", missing)
		}
		f.end(workload.Target{Driver: c.driver, DSNs: []string{primary.DSN()}})
	})
}

// errAgain is that of work which another one of the others has cut short.
var errAgain = errors.New("again")

// begin has the others work until the function that it returns is called.
func begin(t *testing.T, others []*other) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for _, one := range others {
		working.Go(func() {
			for pause(ctx, 100*time.Millisecond) {
				err := one.do(ctx)
				switch {
				case ctx.Err() != nil:
					return
				case err == nil:
					one.done.Add(1)
				case !errors.Is(err, errAgain):
					t.Errorf("%s: %v", one.name, err)
					return
				}
			}
		})
	}
	return sync.OnceFunc(func() { cancel(); working.Wait() })
}

func leastDone(others []*other) int {
	least := others[0].done.Load()
	for _, one := range others {
		least = min(least, one.done.Load())
	}
	return int(least)
}

// others are those that work with the table of a primary and its replica.
func (c cell) others(t *testing.T, primary, replica *server.Server) []*other {
	t.Helper()
	here, there := open(t, c.driver, primary.DSN(), 4), open(t, c.driver, replica.DSN(), 2)
	b := &base{c, primary.DSN(), here}
	// real time: it deletes rows, and holds no lock.
	sweeper := b.registry(t, here, sqllock.RegistryOptions{TTL: besideTTL, NoRenew: true})
	rebuild := "REINDEX TABLE CONCURRENTLY INT_LOCK"
	if c.driver == "mysql" {
		rebuild = "OPTIMIZE TABLE INT_LOCK"
	}
	return []*other{
		{name: "sweeper", do: func(ctx context.Context) error { return check.ErrorOf(sweeper.DeleteExpired(ctx)) }},
		{name: "backup", do: c.backup(t, primary.DSN())},
		{name: "reader on the standby", do: func(ctx context.Context) error { return readTwice(ctx, there) }},
		{name: rebuild, do: func(ctx context.Context) error { return rows(ctx, here, rebuild) }},
	}
}

// backup returns what makes a backup of the database.
func (c cell) backup(t *testing.T, dsn string) func(context.Context) error {
	t.Helper()
	var command []string
	if c.driver == "mysql" {
		must(t, server.Ensure(t.Context(), []string{"mariadb-dump"}, "mariadb-client"))
		config := check.Value(mysql.ParseDSN(dsn))(t)
		host, port, _ := strings.Cut(config.Addr, ":")
		command = []string{
			server.Find("mariadb-dump"), "--single-transaction", "--host=" + host, "--port=" + port, "--user=" + config.User, "--password=" + config.Passwd, config.DBName,
		}
	} else {
		bin := check.Value(server.EnsurePostgres(t.Context()))(t) // whose primary it is, too
		command = []string{filepath.Join(bin, "pg_dump"), "--dbname=" + dsn}
	}
	return func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // a program of the database
		var failed strings.Builder
		cmd.Stderr = &failed
		err := cmd.Run()
		switch {
		case err == nil:
			return nil
		case strings.Contains(failed.String(), "Table definition has changed"), // OPTIMIZE TABLE has come in between
			strings.Contains(failed.String(), "cache lookup failed"): // or the old index of REINDEX has gone
			return errAgain
		default:
			return fmt.Errorf("%w: %s", err, failed.String())
		}
	}
}

// readTwice reads the table twice in one transaction, for some time.
func readTwice(ctx context.Context, db *sqlx.DB) error {
	tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for range 2 {
		err := rows(ctx, tx, "SELECT * FROM INT_LOCK")
		if err != nil && strings.Contains(err.Error(), "conflict with recovery") {
			return errAgain // it has kept the standby from what the primary has done
		}
		if err != nil {
			return err
		}
		pause(ctx, 500*time.Millisecond)
	}
	return nil
}

// rows reads the rows that a statement returns, if any.
func rows(ctx context.Context, db sqlx.QueryerContext, statement string) error {
	found, err := db.QueryxContext(ctx, statement)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if row, err := found.SliceScan(); err == nil && strings.Contains(fmt.Sprintf("%s", row), " Error ") {
			return fmt.Errorf("%s: %s", statement, row)
		}
	}
	return found.Err()
}
