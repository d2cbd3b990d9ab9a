// Package clusters tests sqllock on real clusters that are broken meanwhile: Galera, Group
// Replication, Patroni, PgBouncer, Vitess and TiDB. RESULTS.md has the results.
//
//	make test-clusters    every cluster for a short time, the findings and the controls
//	make clusters         the whole campaign, and the tables of RESULTS.md
//
// The parts, each a package:
//
//	cluster     starts clusters and breaks them
//	workload    worker processes that lock, write and die
//	history     what they did, and when
//	checker     judges a history
//
// and here, in tests: the nemeses, the campaign on each cluster, the negative controls, and a test for
// each finding.
//
// A test on a cluster:
//
//	c := cluster.For(t, "galera", cluster.StartGalera)  // closed when t ends
//	db, err := sqlx.Open(c.Driver, c.Nodes[0].DSN())    // database sqllock, its user may do everything
//	err = c.Nodes[0].CutFromPeers(ctx)                  // also CutFromClients, Pause, Kill
//	err = c.Heal(ctx)                                   // until all nodes are members again
//
// Such a test runs as root on Linux, and only if SQLLOCK_MAY_INSTALL is set, as make does:
//
//	SQLLOCK_MAY_INSTALL=yes go test ./clusters -run TestX -v
package clusters
