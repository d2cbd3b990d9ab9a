package doctor

import (
	"context"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// checkCluster checks that a server that belongs to a Galera cluster or a replication group is a
// working member of it.
func (e *examination) checkCluster(ctx context.Context) []finding {
	switch {
	case sqltext.Of(e.Dialect).Name != "mysql":
		return nil
	case e.engine.Name == probe.Vitess:
		return e.checkVitess(ctx)
	}
	cluster, err := probe.ReadCluster(ctx, e.DB, sqltext.Of(e.Dialect))
	if err != nil {
		return []finding{{noteworthy, "cluster", "not known whether the server belongs to one: " + exit.Text(err), "a node that is no working member of its cluster must not be used for locks: check it by other means"}}
	}
	e.cluster = cluster
	if !cluster.Certifies() && cluster.Problem() == nil {
		return e.detachedFindings(ctx)
	}
	return clusterFindings(cluster)
}

// clusterFindings returns the findings for a node of a cluster.
func clusterFindings(c probe.Cluster) []finding {
	var findings []finding
	switch problem := c.Problem(); {
	case problem != nil:
		findings = append(findings, finding{broken, "cluster", problem.Error(), problemAdvice(c)})
	case c.Galera && c.Size == "1" && strings.Contains(c.Address, ","):
		findings = append(findings, finding{
			noteworthy, "cluster", "Galera, and the node is the only one of its cluster, although wsrep_cluster_address is " + c.Address,
			"if other nodes run, this one was bootstrapped apart from them (--wsrep-new-cluster, pc.bootstrap) and gives out locks that they hold: stop it, and have it join them",
		})
	case c.Galera:
		findings = append(findings, finding{good, "cluster", "Galera, and the node is ready", ""})
	case c.Member == "":
		findings = append(findings, finding{
			noteworthy, "cluster", "the server is configured for the replication group " + c.Group + "; this user may not read whether it is a member",
			"GRANT SELECT ON performance_schema.replication_group_members TO this user: a server that is writable and no member gives out locks that others hold",
		})
	default:
		findings = append(findings, finding{good, "cluster", "Group Replication, and the server is ONLINE", ""})
	}
	if c.RefusesSerializable() {
		findings = append(findings, finding{
			noteworthy, "isolation", "several members of the group accept writes, so they refuse SERIALIZABLE transactions (error 3098), which is the library's default",
			"set RepositoryOptions.Isolation to ReadCommitted, and no higher isolation than REPEATABLE READ for guarded transactions",
		})
	}
	if c.Group != "" && c.ReadsLate() {
		findings = append(findings, finding{
			noteworthy, "reads", "group_replication_consistency is " + c.Consistency + ", so a member may miss, in a read, what another one has committed",
			"set it to BEFORE in the DSN: otherwise sqllock sets it around each read that decides, which takes two more round trips for read-write locks and semaphores",
		})
	}
	return findings
}

func problemAdvice(c probe.Cluster) string {
	switch {
	case c.Galera:
		return "give the DSN of a node that has a quorum, or wait until this one has rejoined"
	case c.Group == "":
		return "give the DSN of a node that runs with wsrep_on=ON; if there are none any more, remove wsrep_cluster_address from the configuration"
	}
	return "give the DSN of a member, or let this server join; super_read_only=ON in its configuration keeps it from accepting writes before it has"
}

// detachedFindings returns a finding for a MariaDB that has Galera's library and does not use it.
// A server that says nothing of Galera has none.
func (e *examination) detachedFindings(ctx context.Context) []finding {
	var provider string
	if err := e.DB.GetContext(ctx, &provider, "SELECT @@wsrep_provider"); err != nil || provider == "" || provider == "none" {
		return nil
	}
	return []finding{{
		noteworthy, "cluster", "Galera is configured, but wsrep_on is OFF: nothing that is written here reaches another node",
		"if other nodes run, use one of those; if not, remove wsrep_provider from the configuration",
	}}
}

// isolation is how the round trip acquires.
func (e *examination) isolation() string {
	if e.cluster.RefusesSerializable() {
		return "READ COMMITTED"
	}
	return "SERIALIZABLE"
}
