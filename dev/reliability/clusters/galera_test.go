//go:build linux

package clusters

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
)

// galeraFaults are what is done to Galera.
var galeraFaults = []nemesis{
	anyNode("kill -9", kill), anyNode("SIGSTOP", stop), anyNode("cut from peers", cutFromPeers),
	anyNode("cut from clients", cutFromClients), killTwo, killAll, lag,
}

// textProtocol has the driver prepare nothing. A node of MariaDB 10.11 that aborts a transaction between two prepared
// statements may not say so: what follows is then committed without what came before, and without Guard.
const textProtocol = "&interpolateParams=true"

// TestGalera runs the campaign with processes that use one node each, and with connections that go to
// any node. A short run takes some minutes, since faults and repairs take time.
func TestGalera(t *testing.T) {
	inParallel(t)
	for _, choice := range []workload.Choice{workload.Own, workload.Random} {
		t.Run(string(choice), func(t *testing.T) {
			inParallel(t)
			b := galeraTrial(t, "Galera, "+string(choice)+" node", cluster.StartGalera, choice)
			b.short = map[workload.Choice][]string{
				workload.Own: {"cut from peers", "kill -9 all nodes"}, workload.Random: {"kill -9", lag.name},
			}[choice]
			b.mustHold(b.run())
		})
	}
}

// TestGaleraNewest is TestGalera on MariaDB 11.8, where innodb_snapshot_isolation is ON by default.
func TestGaleraNewest(t *testing.T) {
	inParallel(t)
	b := galeraTrial(t, "Galera 11.8, random node", cluster.StartGaleraNewest, workload.Random)
	b.short = []string{"kill -9"}
	b.mustHold(b.run())
}

func galeraTrial(t *testing.T, name string, start func(context.Context) (*cluster.Cluster, error), choice workload.Choice) *trial {
	t.Helper()
	c := cluster.For(t, "galera", start)
	b := newTrial(t, name, c, workload.Target{Driver: "mysql", DSNs: dsns(c.Nodes), Work: textProtocol, Choice: choice})
	b.nemeses, b.final = galeraFaults, eachNode(c.Nodes)
	return b
}

// TestGaleraClocks sets the clock of a node within the margin by which a lease ends before its row, a
// tenth of its time-to-live. It takes a minute, in which nodes start and leases end.
func TestGaleraClocks(t *testing.T) {
	inParallel(t)
	c := cluster.For(t, "galera", cluster.StartGaleraWithClocks)
	b := newTrial(t, "Galera, random node, clocks", c, workload.Target{Driver: "mysql", DSNs: dsns(c.Nodes), Work: textProtocol, Choice: workload.Random})
	b.nemeses = []nemesis{clock("clock set by 150 ms", 150*time.Millisecond), anyNode("kill -9", kill)}
	b.short = []string{b.nemeses[0].name}
	b.final = eachNode(c.Nodes)
	b.mustHold(b.run())
}

// clock sets the clock of a node forward, or back.
func clock(name string, by time.Duration) nemesis {
	return nemesis{name, func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
		n := c.Nodes[r.IntN(len(c.Nodes))]
		if r.IntN(2) == 0 {
			by = -by
		}
		if err := n.SetClock(by); err != nil {
			return err
		}
		sleep(ctx, 10*time.Second)
		return n.SetClock(0)
	}}
}

// dsns returns the DSNs of nodes.
func dsns(nodes []*cluster.Node) (all []string) {
	for _, n := range nodes {
		all = append(all, n.DSN())
	}
	return all
}

// eachNode returns a target for each of some nodes of MySQL.
func eachNode(nodes []*cluster.Node) (all []workload.Target) {
	for _, n := range nodes {
		all = append(all, workload.Target{Driver: "mysql", DSNs: []string{n.DSN()}})
	}
	return all
}
