//go:build linux

package clusters

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/mysqldriver"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/contract"
	"github.com/sqllock/sqllock/migrations"
)

// TestVitess runs the campaign on three tablets, of which vtorc makes another one the primary when that is gone, with
// connections that go to either of two vtgates. A short run takes minutes, since faults and repairs take time.
func TestVitess(t *testing.T) {
	inParallel(t)
	c := cluster.For(t, "vitess", cluster.StartVitess)
	b := newTrial(t, "Vitess", c, workload.Target{Driver: "mysql", DSNs: dsns(c.Gates()), Choice: workload.Random})
	b.nemeses = []nemesis{
		primary("kill -9", kill), primary("SIGSTOP", stop), primary("cut from peers", cutFromPeers),
		primary("kill -9 mysqld of", onProcess((*cluster.Node).KillProcesses, mysqld)),
		primary("SIGSTOP mysqld of", onProcess((*cluster.Node).PauseProcesses, mysqld)),
		primary("kill -9 vttablet of", onProcess((*cluster.Node).KillProcesses, "vttablet")),
		primary("SIGSTOP vttablet of", onProcess((*cluster.Node).PauseProcesses, "vttablet")),
		oneOf("kill -9 a vtgate", (*cluster.Cluster).Gates, kill), oneOf("SIGSTOP a vtgate", (*cluster.Cluster).Gates, stop),
		oneOf("cut a vtgate from peers", (*cluster.Cluster).Gates, cutFromPeers),
		oneOf("cut a vtgate from clients", (*cluster.Cluster).Gates, cutFromClients),
		oneOf("kill -9 etcd, vtctld and vtorc", topology, kill), oneOf("SIGSTOP etcd, vtctld and vtorc", topology, stop),
		{"PlannedReparentShard", switchover.harm},
		emergencyReparent, killAll,
	}
	b.short = []string{"kill -9 the primary", "PlannedReparentShard"}
	b.final = append(b.final, eachNode(c.Tablets())...)
	b.mustHold(b.run())
}

// mysqld is the name of its process, which a loader has started.
const mysqld = "ld-linux-x86-64"

// emergencyReparent replaces a primary that may be well and goes on taking writes, which no replica acknowledges then.
var emergencyReparent = nemesis{"EmergencyReparentShard", func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
	if err := c.Vtctld(ctx, "EmergencyReparentShard", "sqllock/0"); err != nil {
		return err
	}
	sleep(ctx, seconds(r, 2, 5))
	return nil
}}

func topology(c *cluster.Cluster) []*cluster.Node { return []*cluster.Node{c.Topology()} }

// onProcess does harm to the processes of a node that have a name.
func onProcess(harm func(n *cluster.Node, name string) error, name string) func(context.Context, *cluster.Node) error {
	return func(_ context.Context, n *cluster.Node) error { return harm(n, name) }
}

// TestVitessFindings takes a minute, in which the contract is run and a primary is replaced twice.
func TestVitessFindings(t *testing.T) {
	c := cluster.For(t, "vitess", cluster.StartVitess)
	gates := c.Gates()
	must(t, migrations.Up(t.Context(), open(t, gates[0].DSN()).DB, dialect.MySQL(), nil)) // CREATE DATABASE is refused
	t.Run("keeps the contract", func(t *testing.T) {
		cell := contract.Cell{Dialect: dialect.MySQL(), Layout: dialect.Spring7, Isolation: sqllock.Serializable}
		run := func(name string) {
			t.Run(name, func(t *testing.T) {
				contract.Run(t, cell, func(r contract.Result) { t.Logf("%d run, %d failed", r.Run, r.Failed) })
			})
		}
		cell.DB = mixed(t, dsns(gates)...)
		run("a pool of one's own")
		target := check.Value(mysqldriver.Parse(gates[0].DSN()))(t)
		pools := check.Value(target.Connect(t.Context(), session.Need{Connections: 24, Acquirers: true}))(t)
		t.Cleanup(func() { must(t, pools.Close()) })
		cell.DB, cell.MultiStatements, cell.OnlyOwn = pools.DB, pools.MultiStatements, true
		run("the pool of Open")
	})
	t.Run("gives a lock to one over the pools of Open", func(t *testing.T) { locksOverOpen(t, dsns(gates)...) })
	t.Run("refuses an order of arrival", func(t *testing.T) { refusesFair(t, open(t, gates[0].DSN()), sqllock.Serializable) })
	t.Run("ends a transaction that was left open", func(t *testing.T) { endsWhatIsOpen(t, gates[0].DSN()) })
	t.Run("refuses statements of the other layout", func(t *testing.T) { refusesOtherLayout(t, gates[0].DSN(), gates[1].DSN(), nil) })
	t.Run("refuses a sharded keyspace", func(t *testing.T) { refusesShards(t, c) })
	t.Run("waits until another tablet is the primary", func(t *testing.T) {
		for name, replace := range map[string]func() error{
			"PlannedReparentShard": func() error { return c.Switchover(t.Context(), 0) },
			"kill -9": func() error {
				p, err := c.Primary(t.Context())
				if err == nil {
					err = p.Kill()
				}
				return err
			},
		} {
			waitsForReparent(t, c, name, replace)
			must(t, c.Heal(t.Context()))
		}
	})
}

// refusesShards tries a keyspace of two shards, which no tablet serves.
func refusesShards(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for _, command := range [][]string{
		{"CreateKeyspace", "--durability-policy=semi_sync", "sharded"},
		{"CreateShard", "sharded/-80"},
		{"CreateShard", "sharded/80-"},
		{"ApplyVSchema", `--vschema={"sharded": true}`, "sharded"},
		{"RebuildKeyspaceGraph", "sharded"},
	} {
		must(t, c.Vtctld(t.Context(), command...))
	}
	gate := c.Gates()[0].DSN()
	of := func(keyspace string) string { return strings.Replace(gate, "/sqllock", "/"+keyspace, 1) }
	prefixed := sqllock.RepositoryOptions{Prefix: "sharded.INT_"}
	for what, try := range map[string]func() error{
		"the keyspace of the DSN": func() error {
			return check.ErrorOf(sqllock.NewRepository(t.Context(), open(t, of("sharded")).DB, dialect.MySQL(), nil))
		},
		"by a type of tablets": func() error {
			return check.ErrorOf(sqllock.NewRepository(t.Context(), open(t, of("sharded@primary")).DB, dialect.MySQL(), nil))
		},
		"that of the prefix": func() error {
			return check.ErrorOf(sqllock.NewRepository(t.Context(), open(t, gate).DB, dialect.MySQL(), &prefixed))
		},
		"tables that are to be created": func() error {
			return check.ErrorOf(mysqllock.Open(t.Context(), gate, &mysqllock.Options{Repository: prefixed, Migrate: migrations.Up}))
		},
	} {
		var err error
		if !untilFor(10*time.Second, func() bool { // until the vtgate knows it
			err = try()
			return errors.Is(err, sqllock.ErrInvalid) && strings.Contains(err.Error(), "sharded of Vitess is sharded")
		}) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// endsWhatIsOpen renews a lease on a connection that the application has left in a transaction, which would undo that.
func endsWhatIsOpen(t *testing.T, dsn string) {
	t.Helper()
	shared := open(t, dsn)
	shared.SetMaxOpenConns(1)
	lease := check.Value(registryOn(t, shared, sqllock.Autocommit).TryLock(t.Context(), "left open"))(t)
	shared.MustExecContext(t.Context(), "BEGIN")
	must(t, lease.RenewFor(t.Context(), 10*longTTL))
	row, found, err := registryOn(t, open(t, dsn), sqllock.Autocommit).Repository().Peek(t.Context(), "left open")
	if err != nil || !found || row.Left < 5*longTTL {
		t.Errorf("%v left, found %v: %v", row.Left, found, err)
	}
	must(t, lease.Unlock(t.Context()))
}

// waitsForReparent has one caller wait through the outage, and another one try: the lock, which is free, is never said
// to be held, and a database error is all that there is.
func waitsForReparent(t *testing.T, c *cluster.Cluster, name string, replace func() error) {
	t.Helper()
	db := mixed(t, dsns(c.Gates())...)
	repository := check.Value(sqllock.NewRepository(t.Context(), db.DB, dialect.MySQL(), nil))(t)
	waits := check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: longTTL, WaitThroughOutages: true, NoRenew: true}))(t)
	replaced := check.Begin(replace)
	failed := 0
	// real time: for so long tries go on, and any number of them may fail
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		lease, err := waits.TryLock(t.Context(), name+" tried")
		switch {
		case err == nil:
			_ = lease.Unlock(t.Context()) // it deletes the row later if it cannot now
		case errors.Is(err, sqllock.ErrDatabase) && !errors.Is(err, sqllock.ErrSchema):
			failed++
		default:
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, <-replaced)
	began := time.Now()
	lease := check.Value(waits.Lock(t.Context(), name))(t)
	t.Logf("%s: %d tries failed, and a caller waited for %v", name, failed, time.Since(began))
	must(t, lease.Unlock(t.Context()))
}
