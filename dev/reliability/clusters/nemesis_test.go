//go:build linux

package clusters

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/internal/bounded"
)

// A nemesis does harm to a cluster. [cluster.Cluster.Heal] undoes it.
type nemesis struct {
	name string
	// harm lasts as long as the fault, and returns when it is to be healed.
	harm func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error
}

// anyNode does something to a node, and lets it be for some seconds.
func anyNode(name string, harm func(context.Context, *cluster.Node) error) nemesis {
	return oneOf(name, func(c *cluster.Cluster) []*cluster.Node { return c.Nodes }, harm)
}

// onlyNode is anyNode for one node.
func onlyNode(name string, index int, harm func(context.Context, *cluster.Node) error) nemesis {
	return oneOf(name, func(c *cluster.Cluster) []*cluster.Node { return c.Nodes[index : index+1] }, harm)
}

// oneOf is anyNode for some nodes.
func oneOf(name string, nodes func(*cluster.Cluster) []*cluster.Node, harm func(context.Context, *cluster.Node) error) nemesis {
	return nemesis{name, func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
		some := nodes(c)
		return onNode(ctx, some[r.IntN(len(some))], r, harm)
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
	sleep(ctx, faultLength(r))
	return nil
}

// faultLength is shorter in a short run, but long enough for the others to notice.
func faultLength(r *rand.Rand) time.Duration {
	if *full > 0 {
		return seconds(r, 4, 14)
	}
	return seconds(r, 4, 8)
}

// seconds returns a random time between two.
func seconds(r *rand.Rand, least, most int) time.Duration {
	return time.Duration(least)*time.Second + time.Duration(r.Int64N(int64(most-least)*int64(time.Second)))
}

var sleep = bounded.Sleep

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

// lag keeps a node of a multi-writer cluster from applying what the others write, for some seconds,
// as a large transaction does: its appliers wait for the lock of a table. The node goes on taking
// writes.
var lag = nemesis{"a node lags behind", func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
	for range 4 {
		if err := lagOnce(ctx, c, r); err != nil {
			return err
		}
		sleep(ctx, time.Second) // it catches up
	}
	return nil
}}

func lagOnce(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // a cluster may have stopped for good
	defer cancel()
	i := r.IntN(len(c.Nodes))
	here, err := sql.Open(c.Driver, c.Nodes[i].DSN())
	if err != nil {
		return err
	}
	defer here.Close()
	there, err := sql.Open(c.Driver, c.Nodes[(i+1)%len(c.Nodes)].DSN())
	if err != nil {
		return err
	}
	defer there.Close()
	conn, err := here.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, statement := range []string{"CREATE TABLE IF NOT EXISTS lagging (n INTEGER AUTO_INCREMENT PRIMARY KEY)", "LOCK TABLES lagging READ"} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	const appliers = 8 // at least as many as the node has
	for range appliers {
		if _, err := there.ExecContext(ctx, "INSERT INTO lagging VALUES (NULL)"); err != nil {
			return err
		}
	}
	sleep(ctx, seconds(r, 3, 7))
	_, err = conn.ExecContext(ctx, "UNLOCK TABLES")
	return err
}
