//go:build linux

package clusters

import (
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
)

// TestGroupReplicationSingle runs the campaign with clients that look for the primary. It takes
// minutes, since faults and repairs take time.
func TestGroupReplicationSingle(t *testing.T) {
	inParallel(t)
	c := cluster.For(t, "group-replication", cluster.StartGroupReplication)
	// The server does not close connections to a node that is no longer the primary. sqllock does that over any pool, and the
	// driver for the application's transactions.
	target := workload.Target{Driver: "mysql", DSNs: dsns(c.Nodes), Choice: workload.Primary, Work: "&rejectReadOnly=true"}
	b := newTrial(t, "Group Replication, single-primary", c, target)
	b.config.Fair = true
	b.nemeses = []nemesis{
		primary("kill -9", kill), primary("SIGSTOP", stop), primary("cut from peers", cutFromPeers),
		anyNode("cut from clients", cutFromClients), switchover, killAll,
	}
	b.short = []string{"kill -9 the primary", "switchover"}
	b.final = eachNode(c.Nodes)
	b.mustHold(b.run())
}

// TestGroupReplicationMulti runs the campaign with connections that go to any node, at the server's own
// consistency, where sqllock has reads wait that decide, and at one where it need not. A short run takes
// minutes.
func TestGroupReplicationMulti(t *testing.T) {
	inParallel(t)
	for name, cell := range map[string]struct {
		isolation  sqllock.Isolation // SERIALIZABLE is refused
		parameters string
	}{
		"by default": {sqllock.ReadCommitted, ""},
		// Not BEFORE_AND_AFTER, under which MySQL stops for good.
		"BEFORE": {sqllock.Autocommit, "&group_replication_consistency=%27BEFORE%27"},
	} {
		t.Run(name, func(t *testing.T) {
			inParallel(t)
			if *full == 0 && cell.parameters != "" {
				t.Skip("only in the full campaign, as it takes minutes")
			}
			c := cluster.For(t, "group-replication", cluster.StartMultiPrimary)
			var all []string
			for _, dsn := range dsns(c.Nodes) {
				all = append(all, dsn+cell.parameters)
			}
			b := newTrial(t, "Group Replication, multi-primary, "+name, c, workload.Target{Driver: "mysql", DSNs: all, Choice: workload.Primary})
			b.config.Isolation = cell.isolation
			b.nemeses = []nemesis{
				anyNode("kill -9", kill), anyNode("SIGSTOP", stop), anyNode("cut from peers", cutFromPeers),
				anyNode("cut from clients", cutFromClients), killAll, lag,
			}
			b.short = []string{"kill -9", "cut from peers"}
			b.final = eachNode(c.Nodes)
			b.mustHold(b.run())
		})
	}
}
