//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// StartBouncer starts PgBouncer, which pools transactions, on the first node, and PostgreSQL, which
// writes to the disk at each commit, on the second.
//
// The user of the DSNs is postgres, without a password. That of the first node has the parameters
// with which pgx and lib/pq can be pooled: each driver passes on the other's, and PgBouncer ignores
// both. The caller closes the cluster.
func StartBouncer(ctx context.Context) (*Cluster, error) {
	bin, err := server.EnsurePostgres(ctx)
	if err != nil {
		return nil, fmt.Errorf("find PostgreSQL: %w", err)
	}
	if err := server.Ensure(ctx, []string{"pgbouncer"}, "pgbouncer"); err != nil {
		return nil, fmt.Errorf("find PgBouncer: %w", err)
	}
	return newCluster(ctx, &Cluster{Name: "pgbouncer", Driver: "pgx", engine: bouncer{bin}}, 2, 0)
}

// bouncer is the engine.
type bouncer struct{ bin string }

func (bouncer) dsn(n *Node) string {
	if n.isBouncer() {
		return fmt.Sprintf("postgres://postgres@%s:6432/sqllock?sslmode=disable&connect_timeout=2&binary_parameters=yes&default_query_exec_mode=exec", n.IP())
	}
	return fmt.Sprintf("postgres://postgres@%s:5432/sqllock?sslmode=disable&connect_timeout=2", n.IP())
}

func (n *Node) isBouncer() bool { return n.Name == "n1" }

func (b bouncer) bootstrap(ctx context.Context, c *Cluster) error {
	pooler, database := c.Nodes[0], c.Nodes[1]
	fresh := false
	if _, err := os.Stat(database.path("data")); err != nil {
		fresh = true
		settings := server.PgBouncerSettings(pooler.IP(), 6432, fmt.Sprintf("host=%s port=5432 user=postgres", database.IP()),
			"admin_users = postgres", "server_connect_timeout = 2")
		err := errors.Join(
			run(ctx, "chown", "postgres:postgres", pooler.dir, database.dir),
			os.WriteFile(pooler.path("pgbouncer.ini"), []byte(settings), 0o644), //nolint:gosec // it runs as another user
			run(ctx, database.host.inside("postgres", filepath.Join(b.bin, "initdb"), "-D", database.path("data"), "-U", "postgres",
				"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")...))
		if err != nil {
			return err
		}
		rule := "host all all 10.0.0.0/8 trust\n"
		if err := os.WriteFile(database.path("data/pg_hba.conf"), []byte(rule), 0o600); err != nil {
			return err
		}
	}
	if err := errors.Join(b.start(ctx, database), b.start(ctx, pooler)); err != nil {
		return err
	}
	if !fresh {
		return nil
	}
	return errors.Join(database.awaitJoinedIn(ctx, "postgres"),
		execute(ctx, "pgx", strings.Replace(database.DSN(), "/sqllock", "/postgres", 1), "CREATE DATABASE sqllock"))
}

func (b bouncer) start(_ context.Context, n *Node) error {
	if n.isBouncer() {
		return n.run("postgres", nil, "pgbouncer", n.path("pgbouncer.ini"))
	}
	return n.run("postgres", nil, filepath.Join(b.bin, "postgres"), "-D", n.path("data"),
		"-c", "listen_addresses="+n.IP(), "-c", "unix_socket_directories=", "-c", "max_connections=300",
		"-c", "shared_buffers=64MB", "-c", "dynamic_shared_memory_type=mmap")
}

func (bouncer) join(ctx context.Context, n *Node) (members int, err error) {
	_, err = ask(ctx, "pgx", n.DSN(), "SELECT 1")
	return len(n.cluster.Nodes), err
}

func (bouncer) primary(_ context.Context, c *Cluster) (*Node, error) { return c.Nodes[1], nil }

func (bouncer) switchOver(context.Context, *Node) error {
	return fmt.Errorf("PgBouncer has one server: %w", errors.ErrUnsupported)
}

// Console sends a command, such as PAUSE, to PgBouncer's console on its first node.
func (c *Cluster) Console(ctx context.Context, command string) error {
	u, err := url.Parse(c.Nodes[0].DSN())
	if err != nil {
		return err
	}
	u.Path = "/pgbouncer"
	u.RawQuery = "sslmode=disable&default_query_exec_mode=simple_protocol"
	return execute(ctx, "pgx", u.String(), command)
}
