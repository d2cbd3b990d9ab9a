//go:build linux

package cluster_test

import (
	"testing"

	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
)

// TestBouncer takes seconds, as servers do to start.
func TestBouncer(t *testing.T) {
	c := cluster.For(t, "pgbouncer", cluster.StartBouncer)
	must(t, on(t.Context(), c, c.Nodes[0], "CREATE TABLE kept (n INTEGER PRIMARY KEY)"))
	for _, n := range c.Nodes {
		must(t, n.Kill())
		must(t, c.Heal(t.Context()))
		must(t, on(t.Context(), c, c.Nodes[0], "SELECT n FROM kept"))
	}
	must(t, c.Console(t.Context(), "PAUSE"))
	if err := on(t.Context(), c, c.Nodes[0], "SELECT n FROM kept"); err == nil {
		t.Error("PgBouncer is not paused")
	}
	must(t, c.Console(t.Context(), "RESUME"))
	must(t, on(t.Context(), c, c.Nodes[0], "SELECT n FROM kept"))
}
