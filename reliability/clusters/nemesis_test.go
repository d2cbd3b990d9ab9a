//go:build linux

package clusters

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock/reliability/clusters/cluster"
)

// A nemesis does harm to a cluster. [cluster.Cluster.Heal] undoes it.
type nemesis struct {
	name string
	// harm lasts as long as the fault, and returns when it is to be healed.
	harm func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error
}

// anyNode does something to a node, and lets it be for some seconds.
func anyNode(name string, harm func(context.Context, *cluster.Node) error) nemesis {
	return nemesis{name, func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
		return onNode(ctx, c.Nodes[r.IntN(len(c.Nodes))], r, harm)
	}}
}

// primary is anyNode for the node that takes writes.
func primary(name string, harm func(context.Context, *cluster.Node) error) nemesis {
	return nemesis{name + " the primary", func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
		n, err := c.Primary(ctx)
		if err != nil {
			return err
		}
		return onNode(ctx, n, r, harm)
	}}
}

func onNode(ctx context.Context, n *cluster.Node, r *rand.Rand, harm func(context.Context, *cluster.Node) error) error {
	if err := harm(ctx, n); err != nil {
		return fmt.Errorf("%s: %w", n, err)
	}
	sleep(ctx, seconds(r, 4, 14))
	return nil
}

// seconds returns a random time between two.
func seconds(r *rand.Rand, least, most int) time.Duration {
	return time.Duration(least)*time.Second + time.Duration(r.Int64N(int64(most-least)*int64(time.Second)))
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// The harms to a node.
var (
	kill           = func(_ context.Context, n *cluster.Node) error { return n.Kill() }
	stop           = func(_ context.Context, n *cluster.Node) error { return n.Pause() }
	cutFromPeers   = func(ctx context.Context, n *cluster.Node) error { return n.CutFromPeers(ctx) }
	cutFromClients = func(ctx context.Context, n *cluster.Node) error { return n.CutFromClients(ctx) }
)

// killAll is a crash of all nodes within milliseconds.
var killAll = nemesis{"kill -9 all nodes", func(_ context.Context, c *cluster.Cluster, _ *rand.Rand) (err error) {
	for _, n := range c.Nodes {
		err = errors.Join(err, n.Kill())
	}
	return err
}}

// killTwo leaves one node without a quorum.
var killTwo = nemesis{"kill -9 two nodes", func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
	spared := r.IntN(len(c.Nodes))
	for i, n := range c.Nodes {
		if i != spared {
			if err := n.Kill(); err != nil {
				return err
			}
		}
	}
	sleep(ctx, seconds(r, 4, 10))
	// Without a quorum the one that is left goes on only if an operator says so. This one starts
	// all of them again.
	return c.Nodes[spared].Kill()
}}

// switchover makes another node the primary.
var switchover = nemesis{"switchover", func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
	if err := c.Switchover(ctx, r.IntN(len(c.Nodes))); err != nil {
		return err
	}
	sleep(ctx, seconds(r, 2, 5))
	return nil
}}

// lag has the nodes of a multi-writer cluster apply large transactions, one after the other: for
// seconds each of them knows less than the one that wrote.
var lag = nemesis{"large transactions", func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
	db, err := sql.Open(c.Driver, c.Nodes[0].DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS bulk (a BIGINT PRIMARY KEY, b CHAR(200), KEY (b))"); err != nil {
		return err
	}
	for range 4 {
		const insert = `INSERT INTO bulk WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
SELECT ? + a.i * 1000 + b.i, SHA2(a.i * 1000 + b.i, 512) FROM n a, n b WHERE b.i <= 120`
		if _, err := db.ExecContext(ctx, insert, r.Int64N(1<<30)*10_000_000); err != nil {
			return err
		}
	}
	_, err = db.ExecContext(ctx, "TRUNCATE TABLE bulk")
	return err
}}
