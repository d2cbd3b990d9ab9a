//go:build linux

package cluster_test

import (
	"testing"

	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
)

// TestGroupReplication takes more than a minute: a node is expelled after seconds, and joins again
// after more of them.
func TestGroupReplication(t *testing.T) {
	c := cluster.For(t, "group-replication", cluster.StartGroupReplication)
	before, err := c.Primary(t.Context())
	must(t, err)
	must(t, c.Switchover(t.Context(), 1))
	after, err := c.Primary(t.Context())
	must(t, err)
	if before == after {
		t.Errorf("the primary is still %v", after)
	}
	breakAndHeal(t, c)
}
