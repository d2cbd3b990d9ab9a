//go:build linux

package cluster_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
)

// TestGalera takes most of a minute: nodes start, join and leave in seconds.
func TestGalera(t *testing.T) {
	c := cluster.For(t, "galera", cluster.StartGalera)
	breakAndHeal(t, c)
}

// breakAndHeal checks that a cluster can be broken in every way and is whole again afterwards, with
// what it has acknowledged.
func breakAndHeal(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	written := 0
	write := func() {
		t.Helper()
		written++
		insert := fmt.Sprintf("INSERT INTO kept VALUES (%d)", written)
		retry(t, func(ctx context.Context) error { return onAny(ctx, c, insert) })
	}
	retry(t, func(ctx context.Context) error {
		return onAny(ctx, c, "CREATE TABLE IF NOT EXISTS kept (n INTEGER PRIMARY KEY)")
	})
	n := c.Nodes[0]
	for name, harm := range map[string]func() error{
		"kill":             n.Kill,
		"pause":            n.Pause,
		"cut from peers":   func() error { return n.CutFromPeers(t.Context()) },
		"cut from clients": func() error { return n.CutFromClients(t.Context()) },
		"kill all":         func() error { return killAll(c) },
	} {
		must(t, harm())
		if name != "kill all" {
			write()
		}
		if n.Joined(t.Context()) == nil && name != "cut from peers" {
			t.Errorf("%s: the node is still there", name)
		}
		must(t, c.Heal(t.Context()))
		write()
		t.Logf("%s: healed", name)
	}
	// The last node may lag behind.
	retry(t, func(ctx context.Context) error {
		db, err := sql.Open(c.Driver, c.Nodes[2].DSN())
		if err != nil {
			return err
		}
		defer db.Close()
		var found int
		err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM kept").Scan(&found)
		if err == nil && found != written {
			err = fmt.Errorf("%d rows of %d", found, written)
		}
		return err
	})
}
