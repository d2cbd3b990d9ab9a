//go:build linux

package clusters

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/reliability/clusters/checker"
	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/migrations"
)

// tidbServers returns the nodes that clients connect to.
func tidbServers(c *cluster.Cluster) []*cluster.Node { return c.Nodes[:3] }

// TestTiDB runs the campaign on three servers of TiDB, with processes that use one of them each, and with
// connections that go to any. A short run takes minutes, since leases last for ten seconds.
func TestTiDB(t *testing.T) {
	inParallel(t)
	for _, choice := range []workload.Choice{workload.Own, workload.Random} {
		t.Run(string(choice), func(t *testing.T) {
			inParallel(t)
			if *full == 0 && choice == workload.Own {
				t.Skip("only in the full campaign, as it takes minutes")
			}
			b := newTiDBTrial(t, "TiDB, "+string(choice)+" server", choice, "")
			b.nemeses = []nemesis{
				tidbServer("kill -9", kill), tidbServer("SIGSTOP", stop), tidbServer("cut from peers", cutFromPeers),
				tidbServer("cut from clients", cutFromClients), onlyNode("kill -9 PD", 3, kill), onlyNode("SIGSTOP PD", 3, stop),
				onlyNode("kill -9 the store", 4, kill), onlyNode("SIGSTOP the store", 4, stop), killAll,
			}
			b.short = []string{"kill -9 a server", "kill -9 the store"}
			b.mustHold(b.run())
		})
	}
}

// newTiDBTrial prepares a trial whose connections have the parameters.
func newTiDBTrial(t *testing.T, name string, choice workload.Choice, parameters string) *trial {
	t.Helper()
	c := cluster.For(t, "tidb-cluster", cluster.StartTiDB)
	var all []string
	for _, dsn := range dsns(tidbServers(c)) {
		all = append(all, dsn+parameters)
	}
	b := newTrial(t, name, c, workload.Target{Driver: "mysql", Engine: "TiDB", DSNs: all, Choice: choice})
	b.config.TTL, b.config.MaxHold = sqltext.TiDB().LeastTTL, 12*time.Second
	return b
}

// tidbServer is anyNode for the servers.
func tidbServer(name string, harm func(context.Context, *cluster.Node) error) nemesis {
	return oneOf(name+" a server", tidbServers, harm)
}

// undisturbed has workers go on until something is found, which is sure without the rows that they have written.
func (b *trial) undisturbed(found func(*checker.Report) bool) nemesis {
	return nemesis{"no fault", func(ctx context.Context, _ *cluster.Cluster, _ *rand.Rand) error {
		for range 60 {
			sleep(ctx, time.Second)
			events, err := history.Read(b.config.History)
			if err != nil || found(checker.Check(events, nil)) {
				return err
			}
		}
		return nil
	}}
}

// TestControlTiDBOnePhase has callers of three servers take over leases that have ended, and commit in one phase or
// asynchronously, under which the substitute store, and not TiDB, loses updates: two of them have the lock. In the load
// of the campaign leases seldom end while several callers try: it did not notice in thousands of acquisitions.
func TestControlTiDBOnePhase(t *testing.T) {
	inParallel(t)
	b := newTiDBTrial(t, "control, TiDB's substitute store with 1PC", workload.Random, "&tidb_enable_1pc=ON&tidb_enable_async_commit=ON")
	var repositories []*sqllock.Repository
	for _, dsn := range slices.Repeat(b.config.Target.DSNs, 2) {
		db := open(t, dsn)
		options := &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit}
		repositories = append(repositories, check.Value(sqllock.NewRepository(t.Context(), db.DB, dialect.TiDB(), options))(t))
	}
	db := open(t, b.config.Target.DSNs[0])
	for n := range 3000 { // about one in fifty
		if found := checker.Check(takeOver(t, db, repositories, fmt.Sprint(n)), nil); len(found.Overlaps) > 0 {
			b.caught(found)
			return
		}
	}
	t.Error("there were never two holders: the control is not caught")
}

// takeOver ends a lease, and has all repositories acquire its key at once.
func takeOver(t *testing.T, db *sqlx.DB, repositories []*sqllock.Repository, key string) (events []history.Event) {
	t.Helper()
	holder := repositories[0].NewHolder()
	check.Value(repositories[0].Acquire(t.Context(), key, holder, longTTL))(t)
	db.MustExecContext(t.Context(), "UPDATE INT_LOCK SET EXPIRED_AFTER = CREATED_DATE WHERE CLIENT_ID = ?", holder)
	var mu sync.Mutex
	var trying sync.WaitGroup
	for caller, r := range repositories {
		trying.Go(func() {
			e := history.Event{Op: history.Acquire, Lease: fmt.Sprint(key, " ", caller), Holds: []history.Hold{{Key: key, Units: 1, Of: 1}}, From: history.Now()}
			got, err := r.Acquire(t.Context(), key, r.NewHolder(), longTTL)
			if err != nil || !got.Acquired {
				return
			}
			e.Token, e.To = got.Token, history.Now()
			mu.Lock()
			events = append(events, e)
			mu.Unlock()
		})
	}
	trying.Wait()
	for _, e := range events {
		events = append(events, history.Event{Op: history.Alive, Lease: e.Lease, To: history.Now()})
	}
	return events
}

// TestControlTiDBShareLock has MySQL's dialect guard transactions by a share lock, which locks nothing under
// tidb_enable_noop_functions: transactions are committed under a later holder. (In a prepared statement it locks, as
// FOR UPDATE does.)
func TestControlTiDBShareLock(t *testing.T) {
	inParallel(t)
	b := newTiDBTrial(t, "control, TiDB with the dialect of MySQL", workload.Random, "&tidb_enable_noop_functions=ON"+textProtocol)
	b.config.Target.Engine, b.config.Isolation, b.config.TTL = "", sqllock.ReadCommitted, 2*time.Second
	b.config.Kill, b.config.Unaware, b.config.Outlive = false, true, true
	b.nemeses = []nemesis{b.undisturbed(func(r *checker.Report) bool { return len(r.Nonlinear) > 0 })}
	r := b.run()
	if len(r.Stale)+len(r.Nonlinear) == 0 {
		t.Error("no guarded write was late: the control is not caught")
	}
	b.caught(r)
}

// TestControlTiDBNumbers has each server cache numbers, as it does by default: tokens do not rise. The library
// refuses such a table, unless it is told the layout.
func TestControlTiDBNumbers(t *testing.T) {
	inParallel(t)
	b := newTiDBTrial(t, "control, TiDB without AUTO_ID_CACHE", workload.Random, "")
	cacheNumbers(t, open(t, b.config.Target.DSNs[0]), "INT_LOCK_FENCE")
	b.config.Kill, b.config.Unaware, b.config.Hasty = false, true, true
	b.nemeses = []nemesis{b.undisturbed(func(r *checker.Report) bool { return len(r.Tokens) > 0 })}
	r := b.run()
	if len(r.Tokens) == 0 {
		t.Error("all tokens rise: the control is not caught")
	}
	b.caught(r)
}

// cacheNumbers replaces a table of fencing tokens by one whose numbers each server caches.
func cacheNumbers(t *testing.T, db *sqlx.DB, table string) {
	t.Helper()
	db.MustExecContext(t.Context(), "DROP TABLE "+table)
	db.MustExecContext(t.Context(), "CREATE TABLE "+table+" (ID BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY)")
}

// TestTiDBFindings takes half a minute, in which the servers start.
func TestTiDBFindings(t *testing.T) {
	c := cluster.For(t, "tidb-cluster", cluster.StartTiDB)
	var servers []*sqlx.DB
	for _, dsn := range dsns(tidbServers(c)) {
		servers = append(servers, open(t, dsn))
	}
	must(t, migrations.Up(t.Context(), servers[0].DB, dialect.TiDB(), nil))
	var registries []*sqllock.Registry
	for _, db := range servers {
		repository := check.Value(sqllock.NewRepository(t.Context(), db.DB, dialect.TiDB(), nil))(t)
		registries = append(registries, check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: longTTL, NoRenew: true}))(t))
	}
	t.Run("refuses the dialect of MySQL", func(t *testing.T) {
		check.Is(t, check.ErrorOf(sqllock.NewRepository(t.Context(), servers[0].DB, dialect.MySQL(), nil)), sqllock.ErrInvalid)
	})
	t.Run("refuses numbers that servers cache", func(t *testing.T) {
		must(t, migrations.Up(t.Context(), servers[0].DB, dialect.TiDB(), &migrations.Options{Prefix: "OLD_"}))
		cacheNumbers(t, servers[0], "OLD_LOCK_FENCE")
		options := &sqllock.RepositoryOptions{Prefix: "OLD_"}
		check.Is(t, check.ErrorOf(sqllock.NewRepository(t.Context(), servers[1].DB, dialect.TiDB(), options)), sqllock.ErrSchema)
	})
	t.Run("refuses statements of the other layout", func(t *testing.T) {
		refusesOtherLayout(t, tidbServers(c)[0].DSN(), "tidb://"+tidbServers(c)[1].DSN(), nil)
	})
	t.Run("excludes over two servers", func(t *testing.T) { excludesOver(t, registries) })
	t.Run("numbers rise over all servers", func(t *testing.T) { risesOver(t, registries) })
	t.Run("locks the row of a guarded transaction", func(t *testing.T) { locksGuardedRow(t, servers, registries) })
}

func excludesOver(t *testing.T, registries []*sqllock.Registry) {
	t.Helper()
	for i, pair := range excluded {
		here, there := registries[i%len(registries)], registries[(i+1)%len(registries)]
		lease := check.Value(kinds[pair[0]](t.Context(), here, fmt.Sprint(pair)))(t)
		_, err := kinds[pair[1]](t.Context(), there, fmt.Sprint(pair))
		check.Is(t, err, sqllock.ErrNotAcquired)
		must(t, lease.Unlock(t.Context()))
		must(t, check.Value(kinds[pair[1]](t.Context(), there, fmt.Sprint(pair)))(t).Unlock(t.Context()))
	}
}

func risesOver(t *testing.T, registries []*sqllock.Registry) {
	t.Helper()
	last := int64(0)
	for i := range 30 {
		lease := check.Value(registries[i%len(registries)].TryLock(t.Context(), "rises"))(t)
		if lease.Token() <= last {
			t.Errorf("token %d after %d", lease.Token(), last)
		}
		last = lease.Token()
		must(t, lease.Unlock(t.Context()))
	}
}

// locksGuardedRow shows that a guarded transaction keeps another server from changing the row, until it is
// committed.
func locksGuardedRow(t *testing.T, servers []*sqlx.DB, registries []*sqllock.Registry) {
	t.Helper()
	lease := check.Value(registries[0].TryLock(t.Context(), "guarded"))(t)
	tx := check.Value(servers[0].BeginTxx(t.Context(), nil))(t)
	defer tx.Rollback() // nothing after a commit
	must(t, lease.Guard(t.Context(), tx))
	rival := check.Value(servers[1].BeginTxx(t.Context(), nil))(t) // a SELECT that is committed by itself locks nothing
	defer rival.Rollback()
	_, err := rival.ExecContext(t.Context(), "SELECT 1 FROM INT_LOCK WHERE CLIENT_ID = ? FOR UPDATE NOWAIT", lease.Holder())
	if number := new(mysql.MySQLError); !errors.As(err, &number) || number.Number != 3572 {
		t.Errorf("a row of a guarded transaction is not locked for another server: %v", err)
	}
	must(t, tx.Commit())
	servers[1].MustExecContext(t.Context(), "UPDATE INT_LOCK SET EXPIRED_AFTER = CREATED_DATE WHERE CLIENT_ID = ?", lease.Holder())
	next := check.Value(registries[1].TryLock(t.Context(), "guarded"))(t)
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	late := check.Value(servers[0].BeginTxx(t.Context(), nil))(t)
	defer late.Rollback()
	check.Is(t, lease.Guard(t.Context(), late), sqllock.ErrLockLost)
}
