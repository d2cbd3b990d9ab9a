//go:build linux

package clusters

import (
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/reliability/clusters/workload"
)

// TestGroupReplicationSingle runs the campaign with clients that look for the primary. It takes
// minutes, since faults and repairs take time.
func TestGroupReplicationSingle(t *testing.T) {
	inParallel(t)
	c := cluster.For(t, "group-replication", cluster.StartGroupReplication)
	b := newTrial(t, "Group Replication, single-primary", c, workload.Target{Driver: "mysql", DSNs: dsns(c), Choice: workload.Primary})
	b.nemeses = []nemesis{
		primary("kill -9", kill), primary("SIGSTOP", stop), primary("cut from peers", cutFromPeers),
		anyNode("cut from clients", cutFromClients), switchover, killAll,
	}
	b.short = []string{"kill -9 the primary", "switchover"}
	b.final = eachNode(c)
	b.mustHold(b.run())
}

// TestGroupReplicationMulti runs the campaign with connections that go to any node. It takes minutes.
func TestGroupReplicationMulti(t *testing.T) {
	inParallel(t)
	c := cluster.For(t, "group-replication", cluster.StartMultiPrimary)
	b := newTrial(t, "Group Replication, multi-primary", c, workload.Target{Driver: "mysql", DSNs: dsns(c), Choice: workload.Primary})
	b.config.Isolation = sqllock.ReadCommitted // SERIALIZABLE is refused
	b.nemeses = []nemesis{
		anyNode("kill -9", kill), anyNode("SIGSTOP", stop), anyNode("cut from peers", cutFromPeers),
		anyNode("cut from clients", cutFromClients), killAll, lag,
	}
	b.short = []string{"kill -9", "cut from peers"}
	b.final = eachNode(c)
	b.mustHold(b.run())
}
