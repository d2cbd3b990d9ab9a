//go:build linux

package cluster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// joinLimit is how long a node may take to join, or a cluster to be whole again. A state transfer
// on a busy machine takes a while.
const joinLimit = 8 * time.Minute

// A Cluster is a running cluster. Its methods, and those of its nodes, are not safe for concurrent
// use.
type Cluster struct {
	// Name is one of [server.Clusters].
	Name string
	// Driver is the database/sql driver of [Node.DSN].
	Driver string
	// Nodes are the database's nodes. They never change.
	Nodes []*Node
	// Restarts counts how often Heal had to kill all nodes, which is no part of a fault.
	Restarts int

	engine  engine
	network *network
	scratch *server.Scratch
}

// An engine is what differs between the kinds of clusters.
type engine interface {
	// bootstrap starts all nodes of a cluster that is down: the first time, or again with
	// everything that it had acknowledged.
	bootstrap(ctx context.Context, c *Cluster) error
	// start starts a node that joins the others. It need not wait.
	start(ctx context.Context, n *Node) error
	// join returns how many members the node sees, or why it is no member that is up to
	// date. It may help it to become one.
	join(ctx context.Context, n *Node) (members int, err error)
	// primary returns the node that takes writes.
	primary(ctx context.Context, c *Cluster) (*Node, error)
	// switchOver makes a node the primary.
	switchOver(ctx context.Context, to *Node) error
	// dsn leads to the database sqllock on the node.
	dsn(n *Node) string
}

// newCluster starts a cluster on n hosts for nodes, and more for the engine.
func newCluster(ctx context.Context, c *Cluster, nodes, others int) (*Cluster, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("start %s: %w; run as root", c.Name, server.ErrMissing)
	}
	if err := server.Ensure(ctx, []string{"ip", "iptables", "nsenter", "setpriv"}, "iproute2", "iptables", "util-linux"); err != nil {
		return nil, fmt.Errorf("find the tools of networks: %w", err)
	}
	var err error
	if c.scratch, err = server.NewScratch(); err != nil {
		return nil, err
	}
	if c.network, err = newNetwork(ctx, nodes+others); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Name, err), c.scratch.Remove())
	}
	for i := range nodes {
		n := &Node{Name: fmt.Sprintf("n%d", i+1), cluster: c, host: c.network.hosts[i]}
		n.dir = filepath.Join(c.scratch.Dir, n.Name)
		if err := os.MkdirAll(n.dir, 0o755); err != nil { //nolint:gosec // servers run as other users
			return nil, errors.Join(err, c.Close())
		}
		c.Nodes = append(c.Nodes, n)
	}
	for _, h := range c.network.hosts {
		err = errors.Join(err, h.ownMemory(ctx, c.scratch.Dir))
	}
	if err == nil {
		err = c.Bootstrap(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Bootstrap starts a cluster all of whose nodes are down, with everything that it has
// acknowledged, and returns when it is whole.
func (c *Cluster) Bootstrap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	if err := c.engine.bootstrap(ctx, c); err != nil {
		return fmt.Errorf("start %s: %w", c.Name, err)
	}
	return c.awaitWhole(ctx)
}

// Heal undoes whatever was done to the nodes: it reconnects and resumes them, starts those that
// are down, and returns when all are members again. Like the init of a machine, it starts a server
// again that ends by itself. Nodes that suspect each other, as they do when the machine stands still,
// can lose their majority for good; then it kills all of them and starts the cluster, as an operator
// does.
func (c *Cluster) Heal(ctx context.Context) error {
	err := c.healWithin(ctx, joinLimit/2)
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	c.Restarts++
	for _, n := range c.Nodes {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	return c.healWithin(ctx, joinLimit)
}

func (c *Cluster) healWithin(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for starts := 0; ; starts++ {
		err := c.heal(ctx)
		if !errors.Is(err, errEnded) || starts == 5 {
			return err
		}
	}
}

func (c *Cluster) heal(ctx context.Context) error {
	err := c.network.heal(ctx)
	down := 0
	for _, n := range c.Nodes {
		n.Resume()
		if !n.IsUp() {
			down++
		}
	}
	if err != nil {
		return err
	}
	if down == len(c.Nodes) {
		return c.Bootstrap(ctx)
	}
	for _, n := range c.Nodes {
		if n.IsUp() {
			continue
		}
		if err := c.engine.start(ctx, n); err != nil {
			return fmt.Errorf("start %s: %w", n, err)
		}
	}
	return c.awaitWhole(ctx)
}

// awaitWhole waits until all nodes are members, and see each other.
func (c *Cluster) awaitWhole(ctx context.Context) error {
	for _, members := range []int{1, len(c.Nodes)} {
		for _, n := range c.Nodes {
			if err := n.awaitJoined(ctx, members); err != nil {
				return err
			}
		}
	}
	return nil
}

// Primary returns the node that takes writes.
func (c *Cluster) Primary(ctx context.Context) (*Node, error) { return c.engine.primary(ctx, c) }

// Switchover makes the node with the index the primary, or the next one if it is already. A cluster refuses that until the
// next primary has caught up (Vitess), or is known (Patroni).
func (c *Cluster) Switchover(ctx context.Context, index int) error {
	ctx, cancel := context.WithTimeout(ctx, joinLimit/2)
	defer cancel()
	for {
		err := c.switchover(ctx, index)
		if err == nil || ctx.Err() != nil {
			return err
		}
		sleep(ctx)
	}
}

func (c *Cluster) switchover(ctx context.Context, index int) error {
	now, err := c.Primary(ctx)
	if err != nil {
		return err
	}
	to := c.Nodes[index%len(c.Nodes)]
	if to == now {
		to = c.Nodes[(index+1)%len(c.Nodes)]
	}
	return c.engine.switchOver(ctx, to)
}

// Close kills all processes of the cluster and removes its data.
func (c *Cluster) Close() error {
	c.network.close()
	return c.scratch.Remove()
}

// Dir returns the directory with the data and the logs of the nodes.
func (c *Cluster) Dir() string { return c.scratch.Dir }

// execute runs statements on one connection to a DSN.
var execute = server.Execute

// askLimit is how long a node may take to answer.
const askLimit = 2 * time.Second

// ask returns the result of a query that has one row with one column.
func ask(ctx context.Context, driver, dsn, query string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return "", err
	}
	defer db.Close() //nolint:errcheck // it was only read from
	err = db.QueryRowContext(ctx, query).Scan(&answer)
	return answer, err
}
