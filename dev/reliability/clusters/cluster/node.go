//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/test/proc"
)

// A Node is a database server on a host of its own.
type Node struct {
	// Name is "n1", "n2" and so on.
	Name string

	cluster *Cluster
	host    *host
	dir     string
	daemon  *proc.Process // the last that was started
}

// String returns the name of the cluster and of the node.
func (n *Node) String() string { return n.cluster.Name + " " + n.Name }

// IP returns the node's address.
func (n *Node) IP() string { return n.host.ip }

// DSN returns a DSN of [Cluster.Driver] for the database sqllock on this node. Its user may do
// everything.
func (n *Node) DSN() string { return n.cluster.engine.dsn(n) }

// Log returns the path of the server's log.
func (n *Node) Log() string { return n.path("server.log") }

func (n *Node) path(name string) string { return filepath.Join(n.dir, name) }

// IsUp reports whether the node's daemon runs.
func (n *Node) IsUp() bool { return n.daemon != nil && !n.daemon.HasEnded() }

// Kill kills all processes of the node with SIGKILL. What it had written survives.
func (n *Node) Kill() error {
	err := n.host.killAll()
	if n.daemon != nil {
		n.daemon.Kill() // nsenter, which may be stopped
	}
	return err
}

// KillProcesses kills the processes of the node that have the name with SIGKILL, at one instant.
func (n *Node) KillProcesses(name string) error {
	return n.signalProcesses(name, syscall.SIGSTOP, syscall.SIGKILL)
}

// PauseProcesses stops the processes of the node that have the name with SIGSTOP. Resume continues them.
func (n *Node) PauseProcesses(name string) error { return n.signalProcesses(name, syscall.SIGSTOP) }

func (n *Node) signalProcesses(name string, signals ...syscall.Signal) error {
	var found []int
	for _, pid := range n.host.processes() {
		if command, _ := proc.Status(pid); command == name {
			found = append(found, pid)
		}
	}
	if found == nil {
		return fmt.Errorf("%s has no process %s", n, name)
	}
	for _, s := range signals {
		for _, pid := range found {
			_ = syscall.Kill(pid, s) // it may have ended
		}
	}
	return nil
}

// Pause stops all processes of the node with SIGSTOP. Its kernel still accepts connections.
func (n *Node) Pause() error { return n.host.stopAll() }

// Resume ends a Pause.
func (n *Node) Resume() {
	n.host.signal(syscall.SIGCONT)
	if n.daemon != nil {
		_ = n.daemon.Cmd.Process.Signal(syscall.SIGCONT) // nsenter stops with its child
	}
}

// Start starts a node that is down, and returns when it has joined the others.
func (n *Node) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	if err := n.cluster.engine.start(ctx, n); err != nil {
		return fmt.Errorf("start %s: %w", n, err)
	}
	return n.awaitJoined(ctx, 1)
}

// CutFromPeers lets the node and all other hosts of the cluster no longer hear each other.
// Clients still reach all of them.
func (n *Node) CutFromPeers(ctx context.Context) (err error) {
	for _, other := range n.cluster.network.hosts {
		if other != n.host {
			err = errors.Join(err, n.cluster.network.cut(ctx, n.host, other))
		}
	}
	return err
}

// CutFrom lets two nodes no longer hear each other.
func (n *Node) CutFrom(ctx context.Context, other *Node) error {
	return n.cluster.network.cut(ctx, n.host, other.host)
}

// CutFromClients lets the node and this process no longer hear each other. The node's peers
// still reach it. It cannot be asked for its state then.
func (n *Node) CutFromClients(ctx context.Context) error {
	return n.cluster.network.cutFromClients(ctx, n.host)
}

// Members returns how many members of its cluster the node sees, or why it is none that is up to date.
func (n *Node) Members(ctx context.Context) (int, error) { return n.cluster.engine.join(ctx, n) }

// errEnded means that a node's daemon has ended by itself.
var errEnded = errors.New("ended by itself")

// awaitJoined waits until the node is a member, and sees as many.
func (n *Node) awaitJoined(ctx context.Context, members int) error {
	for {
		seen, missing := n.cluster.engine.join(ctx, n)
		if missing == nil && seen >= members {
			return nil
		}
		if missing == nil {
			missing = fmt.Errorf("it sees %d of %d members", seen, members)
		}
		select {
		case <-ctx.Done():
		case <-n.daemon.Ended:
			if ctx.Err() == nil && !n.IsUp() {
				return fmt.Errorf("%s: %w; %s", n, errEnded, n.logEnd())
			}
		default:
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s does not join: %w; %w; %s", n, context.Cause(ctx), missing, n.logEnd())
		}
		sleep(ctx)
	}
}

// await waits until a node that was started is ready.
func (n *Node) await(ctx context.Context, ready func() error) error {
	for {
		err := ready()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || n.daemon.HasEnded() {
			return fmt.Errorf("%s: %w; %s", n, err, n.logEnd())
		}
		sleep(ctx)
	}
}

// sleep pauses between two looks.
func sleep(ctx context.Context) { bounded.Sleep(ctx, 100*time.Millisecond) }

// run starts the node's daemon.
func (n *Node) run(user string, environment []string, command ...string) (err error) {
	n.daemon, err = n.host.start(user, n.Log(), environment, command...)
	return err
}

// logEnd returns the end of the log for error messages.
func (n *Node) logEnd() string {
	const enough = 2500
	text, err := os.ReadFile(n.Log())
	if err != nil {
		return fmt.Sprintf("no log: %v", err)
	}
	return fmt.Sprintf("its log ends:\n%s", text[max(0, len(text)-enough):])
}
