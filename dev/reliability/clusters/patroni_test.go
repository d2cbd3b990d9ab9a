//go:build linux

package clusters

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
)

// TestPatroni runs the campaign on PostgreSQL under Patroni, through each driver's own way to find the
// primary. A short run takes minutes: Patroni replaces a primary that is gone after 20 seconds.
func TestPatroni(t *testing.T) {
	inParallel(t)
	eachDriver(t, func(t *testing.T, driver, name string) {
		c := cluster.For(t, "patroni", cluster.StartPatroni)
		b := newTrial(t, "Patroni, synchronous, "+name, c, workload.Target{Driver: driver, DSNs: []string{allNodes(c, driver)}})
		b.config.Fair = true
		b.nemeses = []nemesis{
			primary("kill -9 PostgreSQL of", killPostgres), primary("kill -9 Patroni of", killManager),
			primary("kill -9", kill), primary("SIGSTOP", stop), primary("cut from peers and etcd", cutFromPeers),
			anyNode("cut from clients", cutFromClients), switchover, killAll,
		}
		b.short = []string{"kill -9 PostgreSQL of the primary", "switchover"}
		b.mustHold(b.run())
	})
}

// eachDriver runs a test through pgx and, in the full campaign, as it takes minutes, through lib/pq.
func eachDriver(t *testing.T, test func(t *testing.T, driver, name string)) {
	t.Helper()
	for driver, name := range map[string]string{"pgx": "pgx", "postgres": "lib/pq"} {
		if *full == 0 && driver == "postgres" {
			continue
		}
		t.Run(driver, func(t *testing.T) {
			inParallel(t)
			test(t, driver, name)
		})
	}
}

var (
	killPostgres = onProcess((*cluster.Node).KillProcesses, "postgres")
	killManager  = onProcess((*cluster.Node).KillProcesses, "python3")
)

// allNodes returns a DSN with which the driver looks for the node that takes writes.
func allNodes(c *cluster.Cluster, driver string) string {
	var hosts, ips []string
	for _, n := range c.Nodes {
		hosts, ips = append(hosts, n.IP()+":5432"), append(ips, n.IP())
	}
	if driver == "pgx" {
		return fmt.Sprintf("postgres://postgres@%s/sqllock?sslmode=disable&target_session_attrs=read-write&connect_timeout=2", strings.Join(hosts, ","))
	}
	// lib/pq takes several hosts in this form only.
	return fmt.Sprintf("host=%s port=5432,5432,5432 user=postgres dbname=sqllock sslmode=disable target_session_attrs=read-write connect_timeout=2", strings.Join(ips, ","))
}
