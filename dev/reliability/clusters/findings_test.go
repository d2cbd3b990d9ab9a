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
	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/internal/session/mysqldriver"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// TestGaleraFindings takes two minutes, most of which clusters take to start and a node to notice that
// it is cut off.
func TestGaleraFindings(t *testing.T) {
	t.Run("MariaDB of this machine", func(t *testing.T) { galeraFindings(t, cluster.For(t, "galera", cluster.StartGalera)) })
	t.Run("MariaDB 11.8", func(t *testing.T) { galeraFindings(t, cluster.For(t, "galera", cluster.StartGaleraNewest)) })
}

func galeraFindings(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	t.Run("refuses a late guarded commit", func(t *testing.T) {
		refusesLateCommits(t, lateCommits(t, c.Nodes[0].DSN(), c.Nodes[1].DSN(), sqllock.Serializable))
	})
	t.Run("leaves no connection in a transaction", func(t *testing.T) { leavesNoTransactionOpen(t, c) })
	t.Run("keeps others out through a node that lags behind", func(t *testing.T) {
		l := lagging(t, c, mixed(t, c.Nodes[0].DSN(), c.Nodes[1].DSN()), sqllock.Serializable)
		l.keepsOut(t)
		l.losesNoRow(t)
	})
	t.Run("gives a lock to one over the pools of Open", func(t *testing.T) { locksOverOpen(t, dsns(c.Nodes)...) })
	t.Run("refuses statements of the other layout", func(t *testing.T) { refusesOtherLayout(t, c.Nodes[0].DSN(), c.Nodes[1].DSN(), nil) })
	t.Run("numbers tokens by a table", func(t *testing.T) { refusesSequence(t, c) })
	t.Run("refuses an order of arrival", func(t *testing.T) { refusesFair(t, open(t, c.Nodes[0].DSN()), sqllock.Serializable) })
	t.Run("gives a lock to one", func(t *testing.T) { acquiresForOne(t, c.Nodes[0].DSN(), c.Nodes[1].DSN()) })
	t.Run("acquires nothing outside of the cluster", func(t *testing.T) {
		acquiresNothingOutside(t, c, sqllock.Serializable, map[string]detached{
			"OFF":               {[]string{"--wsrep-on=OFF"}, "wsrep_on is OFF", "wsrep_on is OFF"},
			"no library":        {[]string{"--wsrep-provider=none"}, "wsrep_cluster_status is Disconnected", "wsrep_cluster_status is Disconnected"},
			"bootstrapped anew": {[]string{"--wsrep-new-cluster"}, "wsrep_cluster_state_uuid is", ""},
		})
	})
}

// refusesSequence migrates tables of another prefix. A node would number a sequence apart from the
// others, so there must be none, and one that somebody has made is refused.
func refusesSequence(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	db := open(t, c.Nodes[0].DSN())
	must(t, migrations.Up(t.Context(), db.DB, dialect.MySQL(), &migrations.Options{Prefix: "SEQ_"}))
	options := &sqllock.RepositoryOptions{Prefix: "SEQ_"}
	repository := check.Value(sqllock.NewRepository(t.Context(), db.DB, dialect.MySQL(), options))(t)
	got := check.Value(repository.Acquire(t.Context(), "k", repository.NewHolder(), time.Minute))(t)
	var rows int
	must(t, db.Get(&rows, "SELECT COUNT(ID) FROM SEQ_LOCK_FENCE")) // a sequence has no ID
	if rows != 1 || got.Token == 0 {
		t.Errorf("token %d, %d numbers", got.Token, rows)
	}
	db.MustExec("DROP TABLE SEQ_LOCK_FENCE")
	db.MustExec("CREATE SEQUENCE SEQ_LOCK_FENCE START WITH 1000 NOCACHE ENGINE=InnoDB")
	check.Is(t, check.ErrorOf(sqllock.NewRepository(t.Context(), db.DB, dialect.MySQL(), options)), sqllock.ErrSchema)
}

// refusesOtherLayout adds EXPIRED_AFTER, and drops it, beside processes that use every statement. They were opened
// before, so the server must refuse what they send from then on.
func refusesOtherLayout(t *testing.T, migrating, dsn string, options *sqllock.RepositoryOptions) {
	t.Helper()
	target := check.Value(mysqldriver.Parse(dsn))(t)
	db, dsnOfPool, d := open(t, migrating), strings.TrimPrefix(dsn, "tidb://"), target.Dialect
	repository, settings := sqllock.RepositoryOptions{Prefix: "FOUR_", TTL: longTTL}, sqllock.RegistryOptions{TTL: longTTL}
	if options != nil {
		repository.Isolation = options.Isolation
	}
	up := migrations.Options{Prefix: repository.Prefix, Layout: dialect.Spring6, TTL: longTTL, Force: true}
	must(t, migrations.Up(t.Context(), db.DB, d, &up))
	for _, version := range []uint{4, 2} {
		over := check.Value(sqllock.NewRepository(t.Context(), open(t, dsnOfPool).DB, d, &repository))(t)
		own := check.Value(sqllock.NewRegistry(over, &settings))(t)
		opened := check.Value(mysqllock.Open(t.Context(), dsn, &mysqllock.Options{Repository: repository, Registry: settings}))(t)
		leases := make(map[string]*sqllock.Lease)
		for pool, registry := range map[string]*sqllock.Registry{"own": own, "opened": opened} {
			for kind, acquire := range kinds {
				what := pool + " " + kind
				leases[what] = check.Value(acquire(t.Context(), registry, what))(t)
				must(t, leases[what].Renew(t.Context()))
			}
			kept := check.Value(check.Value(registry.Obtain("kept by " + pool))(t).WithMinHold(longTTL).TryLock(t.Context()))(t)
			must(t, kept.Unlock(t.Context()))
			check.Value(registry.DeleteExpired(t.Context()))(t)
		}
		must(t, migrations.Goto(t.Context(), db.DB, d, version, &up))
		for what, lease := range leases {
			if err := lease.Renew(t.Context()); !errors.Is(err, sqllock.ErrSchema) {
				t.Errorf("version %d: %s was renewed: %v", version, what, err)
			}
			_ = lease.Unlock(t.Context()) // rows of a joint lock stay until they expire
		}
		for pool, registry := range map[string]*sqllock.Registry{"own": own, "opened": opened} {
			for kind, acquire := range kinds {
				if _, err := acquire(t.Context(), registry, "fresh"); !errors.Is(err, sqllock.ErrSchema) {
					t.Errorf("version %d: %s %s was acquired: %v", version, pool, kind, err)
				}
			}
			check.Is(t, check.ErrorOf(registry.DeleteExpired(t.Context())), sqllock.ErrSchema)
			_ = registry.Close(t.Context()) // it deletes no row of the other layout
		}
		db.MustExecContext(t.Context(), "DELETE FROM FOUR_LOCK")
	}
}

// refusesFair asks for what needs sessions that queue on one server.
func refusesFair(t *testing.T, db *sqlx.DB, isolation sqllock.Isolation) {
	t.Helper()
	repository := check.Value(sqllock.NewRepository(t.Context(), db.DB, dialect.MySQL(), &sqllock.RepositoryOptions{Isolation: isolation}))(t)
	_, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{Fair: true})
	check.Is(t, err, sqllock.ErrInvalid)
	check.Contains(t, err.Error(), "needs a single server")
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
		lock := check.Value(registry.Obtain(fmt.Sprint("cut ", n)))(t)
		workers.Go(func() {
			untilFor(time.Minute, func() bool {
				err := lock.ExecuteLockedTxFor(t.Context(), time.Second, work.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
					return check.ErrorOf(tx.ExecContext(ctx, "INSERT INTO late_stall VALUES (NULL)"))
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
	t.Run("refuses statements of the other layout", func(t *testing.T) {
		refusesOtherLayout(t, c.Nodes[0].DSN(), c.Nodes[0].DSN(), &sqllock.RepositoryOptions{Isolation: sqllock.ReadCommitted})
	})
	t.Run("refuses an order of arrival", func(t *testing.T) { refusesFair(t, open(t, c.Nodes[0].DSN()), sqllock.ReadCommitted) })
	t.Run("refuses SERIALIZABLE at the start", func(t *testing.T) {
		_, err := sqllock.NewRepository(t.Context(), open(t, c.Nodes[0].DSN()).DB, dialect.MySQL(), nil)
		if !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), "ReadCommitted") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("keeps others out through a node that lags behind", func(t *testing.T) {
		lagging(t, c, open(t, c.Nodes[0].DSN()), sqllock.ReadCommitted).keepsOut(t)
		lagging(t, c, mixed(t, c.Nodes[0].DSN(), c.Nodes[1].DSN()), sqllock.Autocommit).losesNoRow(t)
	})
	t.Run("acquires several rows in Autocommit", func(t *testing.T) { acquiresSeveral(t, open(t, c.Nodes[0].DSN())) })
	t.Run("acquires nothing outside of the group", func(t *testing.T) {
		acquiresNothingOutside(t, c, sqllock.ReadCommitted, map[string]detached{
			"not started": {[]string{"--super-read-only=OFF", "--read-only=OFF"}, "MEMBER_STATE", "MEMBER_STATE"},
		})
	})
}

// detached is how a node is started that takes writes and is no member, and what is wrong then: for a
// registry that has been there before, and for a new repository; "" if nothing shows it.
type detached struct {
	arguments     []string
	before, after string
}

// acquiresNothingOutside restarts a member without its cluster, under registries that have acquired there
// before.
func acquiresNothingOutside(t *testing.T, c *cluster.Cluster, isolation sqllock.Isolation, ways map[string]detached) {
	t.Helper()
	node := c.Nodes[2]
	db := open(t, node.DSN())
	registry := registryOn(t, db, isolation)
	for _, acquire := range kinds {
		must(t, check.Value(acquire(t.Context(), registry, "inside"))(t).Unlock(t.Context()))
	}
	for name, way := range ways {
		must(t, node.Kill())
		must(t, node.StartOutside(t.Context(), way.arguments...))
		must(t, check.ErrorOf(c.Nodes[0].Members(t.Context())))
		until(t, "it is writable", func() bool {
			_, err := db.ExecContext(t.Context(), "REPLACE INTO late_work VALUES (-1)")
			return err == nil
		})
		for kind, acquire := range kinds {
			if _, err := acquire(t.Context(), registry, "outside "+name); !errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), way.before) {
				t.Errorf("%s, %s of a registry that was there before: %v", name, kind, err)
			}
		}
		_, err := sqllock.NewRepository(t.Context(), db.DB, dialect.MySQL(), &sqllock.RepositoryOptions{Isolation: isolation})
		if way.after == "" && err != nil || way.after != "" && (!errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), way.after)) {
			t.Errorf("%s, a new repository: %v", name, err)
		}
	}
}

// acquiresSeveral acquires what takes a transaction, which must not be SERIALIZABLE there. Three readers
// that have crashed have left their rows.
func acquiresSeveral(t *testing.T, db *sqlx.DB) {
	t.Helper()
	registry := registryOn(t, db, sqllock.Autocommit)
	for kind, acquire := range kinds {
		lease, err := acquire(t.Context(), registry, "autocommit")
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		must(t, lease.Unlock(t.Context()))
	}
	lock := check.Value(rwlock.New(registry, "crashed"))(t)
	crashed := check.Value(rwlock.New(registryOn(t, db, sqllock.Autocommit), "crashed"))(t)
	for range 3 {
		lease := check.Value(crashed.RLock(t.Context()))(t)
		db.MustExecContext(t.Context(), "UPDATE INT_LOCK SET EXPIRED_AFTER = '2026-01-01' WHERE CLIENT_ID = ?", lease.Holder())
	}
	if _, err := lock.TryLock(t.Context()); err != nil {
		t.Errorf("after three readers have crashed: %v", err)
	}
}

// kinds are the locks of a key, of which each can be held once.
var kinds = map[string]func(context.Context, *sqllock.Registry, string) (*sqllock.Lease, error){
	"plain": func(ctx context.Context, r *sqllock.Registry, key string) (*sqllock.Lease, error) {
		return r.TryLock(ctx, key+" plain")
	},
	"joint": func(ctx context.Context, r *sqllock.Registry, key string) (*sqllock.Lease, error) {
		lock, err := r.ObtainAll(key+" a", key+" b")
		if err != nil {
			return nil, err
		}
		return lock.TryLock(ctx)
	},
	"permits": func(ctx context.Context, r *sqllock.Registry, key string) (*sqllock.Lease, error) {
		permits, err := semaphore.New(r, key, 2)
		if err != nil {
			return nil, err
		}
		return permits.TryAcquire(ctx, 2)
	},
	"read": func(ctx context.Context, r *sqllock.Registry, key string) (*sqllock.Lease, error) {
		lock, err := rwlock.New(r, key+" rw")
		if err != nil {
			return nil, err
		}
		return lock.TryRLock(ctx)
	},
	"write": func(ctx context.Context, r *sqllock.Registry, key string) (*sqllock.Lease, error) {
		lock, err := rwlock.New(r, key+" rw")
		if err != nil {
			return nil, err
		}
		return lock.TryLock(ctx)
	},
}

// excluded are the pairs of kinds that exclude each other.
var excluded = [][2]string{{"write", "read"}, {"read", "write"}, {"write", "write"}, {"permits", "permits"}, {"joint", "joint"}, {"plain", "plain"}}

// A straggler has a node that does not apply what another one commits, and two clients: one of that other node,
// and one whose pool leads to the node that lags behind, or to either.
type straggler struct {
	lateCommit
	lateLocks *sqllock.Registry
}

func lagging(t *testing.T, c *cluster.Cluster, late *sqlx.DB, isolation sqllock.Isolation) straggler {
	t.Helper()
	return straggler{lateCommits(t, c.Nodes[0].DSN(), c.Nodes[1].DSN(), isolation), registryOn(t, late, isolation)}
}

// patience is how long a call waits for a node that does not catch up in that time.
const patience = time.Second

// keepsOut acquires on one node what excludes a second lock, and tries to acquire that through the other.
func (l straggler) keepsOut(t *testing.T) {
	t.Helper()
	const trials = 6
	violations := make(map[string]int)
	for n := range trials {
		for _, pair := range excluded {
			key := fmt.Sprint(pair, " ", n, " ", time.Now().UnixNano())
			apply := l.stall(t)
			first := check.Value(kinds[pair[0]](t.Context(), l.thereLocks, key))(t)
			// real time: the node is behind until after the limit, however late that is
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			second, err := kinds[pair[1]](ctx, l.lateLocks, key)
			cancel()
			if err == nil {
				violations[fmt.Sprint(pair)]++
			}
			apply()
			must(t, first.Unlock(t.Context()))
			if second != nil {
				_ = second.Unlock(t.Context()) // it may have been lost
			}
		}
	}
	if len(violations) > 0 {
		final.Store(true)
		t.Errorf("both were in, of %d trials: %v", trials, violations)
	}
}

// losesNoRow renews and deletes, through the other client, rows that the node does not have yet. What is
// not done must not be said to be done, nor to be impossible.
func (l straggler) losesNoRow(t *testing.T) {
	t.Helper()
	there := check.Value(sqllock.NewRepository(t.Context(), l.there.DB, dialect.MySQL(), &sqllock.RepositoryOptions{Isolation: sqllock.ReadCommitted}))(t)
	const trials = 12
	late := l.lateLocks.Repository()
	renewals, releases := 0, 0
	for range trials {
		apply := l.stall(t)
		key, holder := fmt.Sprint("late row ", time.Now().UnixNano()), there.NewHolder()
		got, err := there.Acquire(t.Context(), key, holder, time.Minute)
		if err != nil || !got.Acquired {
			t.Fatal(got, err)
		}
		// real time: the node is behind until after the limit, however late that is
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		renewed, err := late.Renew(ctx, key, holder, longTTL)
		row, ok, unread := there.Peek(t.Context(), key)
		must(t, unread)
		if err == nil && renewed != (ok && row.Left > longTTL/2) || err == nil && !renewed {
			renewals++
		}
		deleted, err := late.Delete(ctx, key, holder)
		if err == nil && !deleted {
			releases++
		}
		cancel()
		apply()
	}
	if renewals+releases > 0 {
		t.Errorf("of %d trials %d renewals and %d deletions were answered wrongly", trials, renewals, releases)
	}
}

// mixed returns a pool whose connections lead to a node at random, and serve once.
func mixed(t *testing.T, dsns ...string) *sqlx.DB {
	t.Helper()
	db, err := workload.Target{Driver: "mysql", DSNs: dsns, Choice: workload.Random}.Open(0, 8)
	must(t, err)
	db.SetMaxIdleConns(-1)
	t.Cleanup(func() { _ = db.Close() })
	return db
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
	if err := c.run(t, "share lock", time.Minute, workload.PlainGuard); err != nil {
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
	lease := check.Value(c.hereLocks.Lock(t.Context(), key))(t)
	tx := c.guarded(t, lease, guard)
	defer tx.Rollback() // nothing after a commit

	apply := c.stall(t)
	defer apply() // also if this trial fails: the next one needs the node
	until(t, "the lease is on the other node, and ends", func() bool {
		n := check.Value(c.writeThere(t, "UPDATE INT_LOCK SET EXPIRED_AFTER = CREATED_DATE WHERE CLIENT_ID = ?", lease.Holder()).RowsAffected())(t)
		return n == 1
	})
	next := check.Value(c.thereLocks.Lock(t.Context(), key))(t)
	c.writeThere(t, "INSERT INTO late_work VALUES (?)", next.Token())
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}

	committed := check.Begin(func() error { return tx.Commit() })
	// A commit that passes is seen on the other node first, because this one must apply in order.
	untilFor(stalled, func() bool {
		return len(committed) > 0 || c.there.GetContext(t.Context(), new(int64), "SELECT token FROM late_work WHERE token = ?", lease.Token()) == nil
	})
	apply()
	err := <-committed
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
		tx = check.Value(c.here.BeginTxx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted}))(t)
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
	conn := check.Value(c.here.Connx(t.Context()))(t)
	must(t, check.ErrorOf(conn.ExecContext(t.Context(), "LOCK TABLES late_stall READ")))
	const appliers = 8 // at least
	for range appliers {
		c.writeThere(t, "INSERT INTO late_stall VALUES (NULL)")
	}
	return sync.OnceFunc(func() {
		if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
			t.Error(err)
		}
		check.Is(t, conn.Close(), nil)
	})
}

func guard(ctx context.Context, l *sqllock.Lease, tx sqllock.Tx) error { return l.Guard(ctx, tx) }

func registryOn(t *testing.T, db *sqlx.DB, isolation sqllock.Isolation) *sqllock.Registry {
	t.Helper()
	repository := check.Value(sqllock.NewRepository(t.Context(), db.DB, dialect.MySQL(), &sqllock.RepositoryOptions{Isolation: isolation}))(t)
	return check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: longTTL}))(t)
}

func open(t *testing.T, dsn string) *sqlx.DB {
	t.Helper()
	db := check.Value(sqlx.Open("mysql", dsn))(t)
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
