//go:build linux

package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of Node.DSN

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/proc"
)

// StartPatroni starts three nodes of PostgreSQL under Patroni in its synchronous mode, and etcd on
// a host of its own. A primary whose host is gone is replaced after 20 seconds, the shortest that
// Patroni allows.
//
// The user of the DSNs is postgres, without a password. The caller closes the cluster.
func StartPatroni(ctx context.Context) (*Cluster, error) { return startPatroni(ctx, true) }

// StartPatroniAsynchronous is StartPatroni with asynchronous replication: a failover may lose what
// was acknowledged.
func StartPatroniAsynchronous(ctx context.Context) (*Cluster, error) { return startPatroni(ctx, false) }

func startPatroni(ctx context.Context, synchronous bool) (*Cluster, error) {
	bin, err := server.EnsurePostgres(ctx)
	if err != nil {
		return nil, fmt.Errorf("find PostgreSQL: %w", err)
	}
	if err := server.Ensure(ctx, []string{"etcd"}, "etcd-server"); err != nil {
		return nil, fmt.Errorf("find etcd: %w", err)
	}
	environment, err := server.FetchPatroni(ctx)
	if err != nil {
		return nil, fmt.Errorf("find Patroni: %w", err)
	}
	return newCluster(ctx, &Cluster{
		Name: "patroni", Driver: "pgx",
		engine: &patroni{bin: bin, environment: environment, synchronous: synchronous},
	}, 3, 1)
}

// patroni is the engine. The last host of its network has etcd.
type patroni struct {
	bin, environment string
	synchronous      bool
	etcd             *proc.Process
}

func (*patroni) dsn(n *Node) string {
	return fmt.Sprintf("postgres://postgres@%s:5432/sqllock?sslmode=disable&connect_timeout=2", n.IP())
}

// patroniSettings are the file patroni.yml: name, address, etcd's address, whether the replication
// is synchronous, the directory of the node, and that of PostgreSQL's programs.
//
//go:embed patroni.yml
var patroniSettings string

func (p *patroni) bootstrap(ctx context.Context, c *Cluster) error {
	fresh := p.etcd == nil
	if fresh {
		if err := p.prepare(ctx, c); err != nil {
			return err
		}
	}
	for i, n := range c.Nodes {
		if err := p.start(ctx, n); err != nil {
			return err
		}
		if i == 0 && fresh {
			if err := n.awaitJoinedIn(ctx, "postgres"); err != nil {
				return err
			}
			if err := execute(ctx, "pgx", strings.Replace(n.DSN(), "/sqllock", "/postgres", 1), "CREATE DATABASE sqllock"); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitJoinedIn waits until the node takes writes, in a database that is there from the beginning.
func (n *Node) awaitJoinedIn(ctx context.Context, database string) error {
	dsn := strings.Replace(n.DSN(), "/sqllock", "/"+database, 1)
	return n.await(ctx, func() error {
		state, err := ask(ctx, "pgx", dsn, "SELECT pg_is_in_recovery()::text")
		if err == nil && state != "false" {
			err = errors.New("it takes no writes yet")
		}
		return err
	})
}

// prepare starts etcd and writes the nodes' files.
func (p *patroni) prepare(ctx context.Context, c *Cluster) (err error) {
	store := c.network.hosts[len(c.Nodes)]
	client, peer := "http://"+store.ip+":2379", "http://"+store.ip+":2380"
	p.etcd, err = store.start("", filepath.Join(c.Dir(), "etcd.log"), nil, "etcd", "--data-dir", filepath.Join(c.Dir(), "etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	if err != nil {
		return err
	}
	for _, n := range c.Nodes {
		settings := fmt.Sprintf(patroniSettings, n.Name, n.IP(), store.ip, p.synchronous, n.dir, p.bin)
		err = errors.Join(
			err,
			os.WriteFile(n.path("patroni.yml"), []byte(settings), 0o644), //nolint:gosec // Patroni runs as another user
			// The user's cache is closed to other users.
			os.Mkdir(n.path("python"), 0o755), //nolint:gosec // the same
			run(ctx, n.host.inside("", "mount", "--bind", p.environment, n.path("python"))...),
			run(ctx, "chown", "postgres:postgres", n.dir))
	}
	return err
}

func (p *patroni) start(_ context.Context, n *Node) error {
	return n.run("postgres", []string{"PATH=" + p.bin + ":/usr/bin:/bin"}, n.path("python/bin/python3"), "-m", "patroni", n.path("patroni.yml"))
}

// join returns 3 for a replica that streams: then it has a primary, which counts its replicas.
func (p *patroni) join(ctx context.Context, n *Node) (members int, err error) {
	state, err := ask(ctx, "pgx", p.dsn(n), `SELECT CASE
WHEN NOT pg_is_in_recovery() THEN (SELECT 'primary ' || COUNT(*) || ' ' || COUNT(*) FILTER (WHERE sync_state IN ('sync', 'quorum'))
	FROM pg_stat_replication WHERE state = 'streaming')
ELSE (SELECT 'replica ' || COUNT(*) || ' 0' FROM pg_stat_wal_receiver WHERE status = 'streaming') END`)
	if err != nil {
		return 0, err
	}
	var role string
	var streams, synchronous int
	if _, err := fmt.Sscan(state, &role, &streams, &synchronous); err != nil {
		return 0, fmt.Errorf("%q: %w", state, err)
	}
	switch {
	case role == "replica" && streams == 0:
		return 0, errors.New("it does not replicate")
	case role == "replica":
		return len(n.cluster.Nodes), nil
	case p.synchronous && streams > 0 && synchronous == 0:
		return 1, nil // Patroni has not made any of its replicas a synchronous one yet
	default:
		return streams + 1, nil
	}
}

// primary returns the node that Patroni calls the leader.
func (*patroni) primary(ctx context.Context, c *Cluster) (*Node, error) {
	var failed error
	for _, n := range c.Nodes {
		answer, err := ask(ctx, "pgx", n.DSN(), "SELECT (NOT pg_is_in_recovery() AND EXISTS (SELECT FROM pg_stat_replication))::text")
		if err == nil && answer == "true" {
			return n, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("no node is the primary: %w", failed)
}

// switchOver lets Patroni choose the node: with synchronous replication only one may be the next.
func (p *patroni) switchOver(ctx context.Context, to *Node) error {
	now, err := p.primary(ctx, to.cluster)
	if err != nil {
		return err
	}
	return requestSwitchover(ctx, now)
}

func requestSwitchover(ctx context.Context, leader *Node) error {
	body, err := json.Marshal(map[string]string{"leader": leader.Name})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+leader.IP()+":8008/switchover", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode == http.StatusOK {
		return err
	}
	return fmt.Errorf("switchover refused by Patroni: %s: %s", answer.Status, text)
}
