//go:build linux

package clusters

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sqllock/sqllock/dev/reliability/clusters/checker"
	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
)

// The negative controls break a promise in ways that are known, so that the campaign is known to
// notice. Each must have violations.

// TestControlAsynchronousFailover cuts the replicas off, lets workers write, and kills the primary:
// what it acknowledged meanwhile is lost, and tokens are given again. It takes a minute, most of
// which Patroni needs to start and to replace the primary.
func TestControlAsynchronousFailover(t *testing.T) {
	inParallel(t)
	c := cluster.For(t, "patroni", cluster.StartPatroniAsynchronous)
	b := newTrial(t, "control, Patroni asynchronous", c, workload.Target{Driver: "pgx", DSNs: []string{allNodes(c, "pgx")}})
	b.forgets(c.Nodes)
}

// forgets runs the trial, and fails the test unless the failover has forgotten writes and tokens. copies are the nodes that
// have the data.
func (b *trial) forgets(copies []*cluster.Node) {
	t := b.t
	t.Helper()
	b.config.Kill = false
	b.nemeses = []nemesis{{"replicas cut off, then kill -9 the primary", func(ctx context.Context, c *cluster.Cluster, _ *rand.Rand) error {
		return cutOffAndKill(ctx, c, copies, func(*cluster.Node) int { return b.workers.Acquisitions() })
	}}}
	r := b.run()
	if len(r.Missing) == 0 || len(r.Tokens) == 0 {
		t.Errorf("%d acknowledged writes are lost, %d tokens do not rise: the control is not caught", len(r.Missing), len(r.Tokens))
	}
	b.caught(r)
}

// cutOffAndKill leaves the primary in touch with etcd, so that it goes on for as long as it lives. What
// it has sent to a replica that is merely stopped would arrive later. acquired says how often locks were acquired.
func cutOffAndKill(ctx context.Context, c *cluster.Cluster, copies []*cluster.Node, acquired func(primary *cluster.Node) int) error {
	p, err := c.Primary(ctx)
	if err != nil {
		return err
	}
	for _, n := range copies {
		if n != p {
			if err := n.CutFrom(ctx, p); err != nil {
				return err
			}
		}
	}
	// PostgreSQL logs 32 numbers of a sequence in advance.
	const lost = 100
	for enough := acquired(p) + lost; acquired(p) < enough && ctx.Err() == nil; {
		sleep(ctx, 50*time.Millisecond)
	}
	if err := p.Kill(); err != nil {
		return err
	}
	return awaitOther(ctx, c, p)
}

// awaitOther waits until another node is the primary: a killed one that comes back sooner would still
// know everything.
func awaitOther(ctx context.Context, c *cluster.Cluster, old *cluster.Node) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		if now, err := c.Primary(ctx); err == nil && now != old {
			sleep(ctx, 5*time.Second) // workers go on there
			return nil
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return errors.New("no other node became the primary")
		}
	}
}

// TestControlVitessAsynchronous does the same to a keyspace of Vitess whose durability policy is none. It takes a minute, in
// which the cluster starts and vtorc replaces the primary.
func TestControlVitessAsynchronous(t *testing.T) {
	inParallel(t)
	c := cluster.For(t, "vitess", cluster.StartVitessAsynchronous)
	b := newTrial(t, "control, Vitess asynchronous", c, workload.Target{Driver: "mysql", DSNs: dsns(c.Gates()), Choice: workload.Random})
	b.forgets(c.Tablets())
}

// TestControlPlainGuard guards transactions on Galera by a share lock on the row, as is right on a
// single server. The lock is in no write set: while a node lags behind, its transactions commit after
// a later holder's. It takes a minute, in which nodes start and leases end.
func TestControlPlainGuard(t *testing.T) {
	inParallel(t)
	c := cluster.For(t, "galera", cluster.StartGalera)
	b := newTrial(t, "control, Galera without the write of Guard", c, workload.Target{Driver: "mysql", DSNs: dsns(c.Nodes), Choice: workload.Own})
	b.config.Kill, b.config.Unaware, b.config.Outlive = false, true, true
	b.nemeses = []nemesis{{lag.name, b.lagUntilLate}}
	r := b.run()
	if len(r.Stale)+len(r.Nonlinear) == 0 {
		t.Error("no guarded write was late: the control is not caught")
	}
	b.caught(r)
}

// TestControlPlainReads has readers and writers on Galera whose connections lead to random nodes, and whose
// reads do not wait until a node that lags behind has caught up. It takes a minute, in which nodes start and
// lag behind.
func TestControlPlainReads(t *testing.T) {
	inParallel(t)
	c := cluster.For(t, "galera", cluster.StartGalera)
	b := newTrial(t, "control, Galera without reads that wait", c, workload.Target{Driver: "mysql", DSNs: dsns(c.Nodes), Choice: workload.Random})
	b.config.Kill, b.config.Unaware, b.config.Shared = false, true, true
	b.nemeses = []nemesis{{lag.name, b.lagUntilLate}}
	r := b.run()
	if len(r.Overlaps) == 0 {
		t.Error("there was never a reader beside a writer: the control is not caught")
	}
	b.caught(r)
}

// lagUntilLate lets nodes lag behind until a lock is not linearizable, as when a guarded transaction was
// committed under a later holder, or often enough.
func (b *trial) lagUntilLate(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
	for range 30 {
		if err := lagOnce(ctx, c, r); err != nil {
			return err
		}
		events, err := history.Read(b.config.History)
		if err != nil {
			return err
		}
		if found := checker.Check(events, nil); len(found.Nonlinear) > 0 {
			return nil
		}
	}
	return nil
}

// TestControlClock sets the clock of a node of Galera forward by more than a time-to-live: there each
// row looks expired. It takes half a minute, in which nodes start.
func TestControlClock(t *testing.T) {
	inParallel(t)
	c := cluster.For(t, "galera", cluster.StartGaleraWithClocks)
	b := newTrial(t, "control, a clock that is wrong", c, workload.Target{Driver: "mysql", DSNs: dsns(c.Nodes), Choice: workload.Own})
	b.config.Kill = false
	b.nemeses = []nemesis{{"clock set by 5 s", func(ctx context.Context, c *cluster.Cluster, _ *rand.Rand) error {
		if err := c.Nodes[2].SetClock(5 * time.Second); err != nil {
			return err
		}
		sleep(ctx, 15*time.Second)
		return c.Nodes[2].SetClock(0)
	}}}
	r := b.run()
	if len(r.Overlaps) == 0 {
		t.Error("there were never two holders: the control is not caught")
	}
	b.caught(r)
}

// caught logs what was found, and fails the test if it is nothing.
func (b *trial) caught(r interface{ Violations() []string }) {
	b.t.Helper()
	violations := r.Violations()
	if len(violations) == 0 {
		b.t.Errorf("%s: the control is not caught", b.name)
	}
	for i, v := range violations {
		if i == 5 {
			b.t.Logf("… and %d more", len(violations)-i)
			return
		}
		b.t.Log(fmt.Sprint(v))
	}
}
