//go:build linux

package clusters

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/reliability/clusters/cluster"
)

// TestGaleraFindings takes a minute, most of which a cluster takes to start and a node to notice that
// it is cut off.
func TestGaleraFindings(t *testing.T) {
	c := cluster.For(t, "galera", cluster.StartGalera)
	t.Run("refuses a late guarded commit", func(t *testing.T) {
		refusesLateCommits(t, lateCommits(t, c.Nodes[0].DSN(), c.Nodes[1].DSN(), sqllock.Serializable))
	})
	t.Run("leaves no connection in a transaction", func(t *testing.T) { leavesNoTransactionOpen(t, c) })
	t.Run("numbers tokens by a table", func(t *testing.T) { refusesSequence(t, c) })
	t.Run("gives a lock to one", func(t *testing.T) { acquiresForOne(t, c.Nodes[0].DSN(), c.Nodes[1].DSN()) })
}

// refusesSequence migrates tables of another prefix. A node would number a sequence apart from the
// others, so there must be none, and one that somebody has made is refused.
func refusesSequence(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	db := open(t, c.Nodes[0].DSN())
	must(t, migrations.Up(t.Context(), db.DB, dialect.MySQL(), &migrations.Options{Prefix: "SEQ_"}))
	options := &sqllock.RepositoryOptions{Prefix: "SEQ_"}
	repository, err := sqllock.NewRepository(t.Context(), db.DB, dialect.MySQL(), options)
	must(t, err)
	got, err := repository.Acquire(t.Context(), "k", repository.NewHolder(), time.Minute)
	must(t, err)
	var rows int
	must(t, db.Get(&rows, "SELECT COUNT(ID) FROM SEQ_LOCK_FENCE")) // a sequence has no ID
	if rows != 1 || got.Token == 0 {
		t.Errorf("token %d, %d numbers", got.Token, rows)
	}
	db.MustExec("DROP TABLE SEQ_LOCK_FENCE")
	db.MustExec("CREATE SEQUENCE SEQ_LOCK_FENCE START WITH 1000 NOCACHE ENGINE=InnoDB")
	if _, err := sqllock.NewRepository(t.Context(), db.DB, dialect.MySQL(), options); !errors.Is(err, sqllock.ErrSchema) {
		t.Errorf("a sequence: %v", err)
	}
}

// leavesNoTransactionOpen cuts a node off while locks are acquired and transactions guarded there. It
// refuses COMMIT and ROLLBACK then. A connection that went back to its pool inside a transaction would
// acquire locks after the healing that no other node ever sees.
func leavesNoTransactionOpen(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	node, db := c.Nodes[0], open(t, c.Nodes[0].DSN())
	registry := registryOn(t, db, sqllock.Serializable)
	work := open(t, node.DSN())
	must(t, node.CutFromPeers(t.Context()))
	var refused atomic.Int64
	var workers sync.WaitGroup
	for n := range 4 {
		workers.Go(func() {
			untilFor(time.Minute, func() bool {
				err := registry.ExecuteLockedTxFor(t.Context(), fmt.Sprint("cut ", n), time.Second, work.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, "INSERT INTO late_stall VALUES (NULL)")
					return err
				})
				if number := new(mysql.MySQLError); errors.As(err, &number) && number.Number == 1047 {
					refused.Add(1)
				}
				return refused.Load() > 20
			})
		})
	}
	workers.Wait()
	if refused.Load() == 0 {
		t.Fatal("the node refused nothing")
	}
	must(t, c.Heal(t.Context()))

	others := registryOn(t, open(t, c.Nodes[1].DSN()), sqllock.Serializable)
	for n := range 12 {
		key := fmt.Sprint("healed ", n)
		until(t, "the lock is acquired", func() bool {
			_, err := registry.TryLockFor(t.Context(), key, 0)
			if errors.Is(err, sqllock.ErrNotAcquired) {
				t.Fatalf("a lock that was never held: %v", err)
			}
			return err == nil
		})
		if _, err := others.TryLock(t.Context(), key); !errors.Is(err, sqllock.ErrNotAcquired) {
			t.Errorf("another node does not see that %q is held: %v", key, err)
		}
	}
}

// TestGroupReplicationFindings takes minutes: it starts a cluster, and a node of it twice.
func TestGroupReplicationFindings(t *testing.T) {
	c := cluster.For(t, "group-replication", cluster.StartMultiPrimary)
	t.Run("refuses a late guarded commit", func(t *testing.T) {
		refusesLateCommits(t, lateCommits(t, c.Nodes[0].DSN(), c.Nodes[1].DSN(), sqllock.ReadCommitted))
	})
	t.Run("refuses SERIALIZABLE at the start", func(t *testing.T) {
		_, err := sqllock.NewRepository(t.Context(), open(t, c.Nodes[0].DSN()).DB, dialect.MySQL(), nil)
		if !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), "ReadCommitted") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("acquires nothing outside of the group", func(t *testing.T) { acquiresNothingOutside(t, c) })
}

// acquiresNothingOutside restarts a member with writes allowed and without its group, under a
// registry that has acquired there before, and one that is new.
func acquiresNothingOutside(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	node := c.Nodes[2]
	db := open(t, node.DSN())
	registry := registryOn(t, db, sqllock.ReadCommitted)
	lease, err := registry.Lock(t.Context(), "inside")
	must(t, err)
	must(t, lease.Unlock(t.Context()))
	must(t, node.Kill())
	must(t, node.StartOutside(t.Context()))
	_, err = db.ExecContext(t.Context(), "INSERT INTO late_work VALUES (-1)")
	must(t, err) // it is writable

	if _, err := registry.TryLock(t.Context(), "outside"); !errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), "MEMBER_STATE") {
		t.Errorf("a registry that was there before: %v", err)
	}
	_, err = sqllock.NewRepository(t.Context(), db.DB, dialect.MySQL(), &sqllock.RepositoryOptions{Isolation: sqllock.ReadCommitted})
	if !errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), "MEMBER_STATE") {
		t.Errorf("a new repository: %v", err)
	}
}

// refusesLateCommits makes four trials with Guard, and then with the share lock that Guard takes on
// a server of its own, to show that the trial finds what is wrong with that.
func refusesLateCommits(t *testing.T, c lateCommit) {
	t.Helper()
	for n := range 4 {
		if err := c.run(t, fmt.Sprintf("guarded %d", n), 2*time.Second, guard); err == nil {
			final.Store(true)
			t.Errorf("trial %d: the guarded transaction was committed after the next holder's", n)
		} else {
			t.Logf("trial %d: %v", n, err)
		}
	}
	if err := c.run(t, "share lock", time.Minute, guardByShareLock); err != nil {
		t.Errorf("the control was refused: %v", err)
	}
}

// A lateCommit tries to commit a guarded transaction on one node when the next holder has acquired
// the lock on another.
type lateCommit struct {
	here, there           *sqlx.DB
	hereLocks, thereLocks *sqllock.Registry
}

// longTTL is longer than any trial: leases end by a statement, and not by the clock.
const longTTL = 10 * time.Minute

func lateCommits(t *testing.T, here, there string, isolation sqllock.Isolation) lateCommit {
	t.Helper()
	c := lateCommit{here: open(t, here), there: open(t, there)}
	must(t, migrations.Up(t.Context(), c.here.DB, dialect.MySQL(), nil))
	c.here.MustExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS late_work (token BIGINT PRIMARY KEY)")
	c.here.MustExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS late_stall (n INT AUTO_INCREMENT PRIMARY KEY)")
	until(t, "the tables are on the other node", func() bool {
		_, err := c.there.ExecContext(t.Context(), "SELECT * FROM late_stall, INT_LOCK_FENCE WHERE 1 = 0")
		return err == nil
	})
	c.hereLocks, c.thereLocks = registryOn(t, c.here, isolation), registryOn(t, c.there, isolation)
	return c
}

// run returns the error of the late commit. The node that it is sent to has not applied yet what the
// next holder did, and does so when the commit is answered or known to pass, or after the given time.
func (c lateCommit) run(t *testing.T, key string, stalled time.Duration, guard func(context.Context, *sqllock.Lease, sqllock.Tx) error) error {
	t.Helper()
	lease, err := c.hereLocks.Lock(t.Context(), key)
	must(t, err)
	tx := c.guarded(t, lease, guard)
	defer tx.Rollback() // nothing after a commit

	apply := c.stall(t)
	defer apply() // also if this trial fails: the next one needs the node
	until(t, "the lease is on the other node, and ends", func() bool {
		n, err := c.writeThere(t, "UPDATE INT_LOCK SET EXPIRED_AFTER = CREATED_DATE WHERE CLIENT_ID = ?", lease.Holder()).RowsAffected()
		must(t, err)
		return n == 1
	})
	next, err := c.thereLocks.Lock(t.Context(), key)
	must(t, err)
	c.writeThere(t, "INSERT INTO late_work VALUES (?)", next.Token())
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}

	committed := make(chan error, 1)
	go func() { committed <- tx.Commit() }()
	// A commit that passes is seen on the other node first, because this one must apply in order.
	untilFor(stalled, func() bool {
		return len(committed) > 0 || c.there.GetContext(t.Context(), new(int64), "SELECT token FROM late_work WHERE token = ?", lease.Token()) == nil
	})
	apply()
	err = <-committed
	found := c.there.GetContext(t.Context(), new(int64), "SELECT token FROM late_work WHERE token = ?", lease.Token())
	if err != nil && !errors.Is(found, sql.ErrNoRows) {
		t.Errorf("the transaction failed with %v, and its row is there: %v", err, found)
	}
	_ = next.Unlock(t.Context()) // it may have ended meanwhile
	return err
}

// guarded begins the transaction that is late. It begins again if it loses a race with what the node
// applies of earlier trials.
func (c lateCommit) guarded(t *testing.T, lease *sqllock.Lease, guard func(context.Context, *sqllock.Lease, sqllock.Tx) error) (tx *sqlx.Tx) {
	t.Helper()
	unlessRaced(t, func() (err error) {
		tx, err = c.here.BeginTxx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		must(t, err)
		if err = guard(t.Context(), lease, tx); err == nil {
			_, err = tx.ExecContext(t.Context(), "INSERT INTO late_work VALUES (?)", lease.Token())
		}
		if err != nil {
			_ = tx.Rollback() // the server has done so already if it lost a race
		}
		return err
	})
	return tx
}

// writeThere runs a statement on the other node.
func (c lateCommit) writeThere(t *testing.T, statement string, args ...any) (result sql.Result) {
	t.Helper()
	unlessRaced(t, func() (err error) {
		result, err = c.there.ExecContext(t.Context(), statement, args...)
		return err
	})
	return result
}

// unlessRaced does something again as long as it loses a race, error 1213, with what a node applies.
func unlessRaced(t *testing.T, do func() error) {
	t.Helper()
	until(t, "a race is not lost", func() bool {
		err := do()
		if number := new(mysql.MySQLError); errors.As(err, &number) && number.Number == 1213 {
			return false
		}
		must(t, err)
		return true
	})
}

// stall keeps this node from applying what the other one writes from now on, until apply is called:
// each of its appliers waits for a table lock.
func (c lateCommit) stall(t *testing.T) (apply func()) {
	t.Helper()
	conn, err := c.here.Connx(t.Context())
	must(t, err)
	_, err = conn.ExecContext(t.Context(), "LOCK TABLES late_stall READ")
	must(t, err)
	const appliers = 8 // at least
	for range appliers {
		c.writeThere(t, "INSERT INTO late_stall VALUES (NULL)")
	}
	return sync.OnceFunc(func() {
		if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
}

func guard(ctx context.Context, l *sqllock.Lease, tx sqllock.Tx) error { return l.Guard(ctx, tx) }

// guardByShareLock is what Guard does on a server of its own.
func guardByShareLock(ctx context.Context, l *sqllock.Lease, tx sqllock.Tx) error {
	rows, err := tx.QueryContext(ctx, "SELECT 1 FROM INT_LOCK WHERE CLIENT_ID = ? LOCK IN SHARE MODE", l.Holder())
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		return errors.Join(rows.Err(), sql.ErrNoRows)
	}
	return rows.Err()
}

func registryOn(t *testing.T, db *sqlx.DB, isolation sqllock.Isolation) *sqllock.Registry {
	t.Helper()
	repository, err := sqllock.NewRepository(t.Context(), db.DB, dialect.MySQL(), &sqllock.RepositoryOptions{Isolation: isolation})
	must(t, err)
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: longTTL})
	must(t, err)
	return registry
}

func open(t *testing.T, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("mysql", dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// until waits for a state, with a limit that no machine needs.
func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	if !untilFor(time.Minute, reached) {
		t.Fatalf("waited too long: %s", what)
	}
}

func untilFor(limit time.Duration, reached func() bool) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if reached() {
			return true
		}
	}
	return false
}
