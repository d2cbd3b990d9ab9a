//go:build linux

package clusters

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
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
		{"PlannedReparentShard", switchover.harm}, emergencyReparent, killAll,
	}
	b.short = []string{"kill -9 the primary", "PlannedReparentShard"}
	b.final = append(b.final, eachNode(c.Tablets())...)
	b.mustHold(b.run())
}

// mysqld is the name of its process, which a loader has started.
const mysqld = "ld-linux-x86-64"

// emergencyReparent replaces a primary that may be well and goes on taking writes, which no replica acknowledges then.
var emergencyReparent = nemesis{"EmergencyReparentShard", func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
	if err := c.EmergencyReparent(ctx); err != nil {
		return err
	}
	sleep(ctx, seconds(r, 2, 5))
	return nil
}}

func topology(c *cluster.Cluster) []*cluster.Node { return []*cluster.Node{c.Topology()} }

// onProcess does harm to the processes of a node that have a name.
func onProcess(harm func(n *cluster.Node, name string), name string) func(context.Context, *cluster.Node) error {
	return func(_ context.Context, n *cluster.Node) error {
		harm(n, name)
		return nil
	}
}
