//go:build linux

package cluster_test

import (
	"testing"

	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
)

// TestPatroni takes minutes: Patroni replaces a primary that is gone after 20 seconds.
func TestPatroni(t *testing.T) {
	c := cluster.For(t, "patroni", cluster.StartPatroni)
	t.Log("started")
	must(t, c.Switchover(t.Context(), 0))
	t.Log("switched over")
	must(t, c.Heal(t.Context()))
	breakAndHeal(t, c)
}
