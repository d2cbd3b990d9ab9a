//go:build linux

package clusters

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/internal/test/check"
)

// A judged is a cluster that the command verify judges.
type judged struct {
	name  string // of [server.Clusters]
	start func(context.Context) (*cluster.Cluster, error)
	dsns  func(*cluster.Cluster) []string
	// before and during, if not nil, do harm before verify begins, or while its processes contend.
	before, during func(context.Context, *cluster.Cluster) error
	broken         string // the promise that is not kept, or ""
}

// TestVerify has the command verify judge clusters. It must say yes where all promises are kept, and otherwise name one that is
// not. It takes minutes, since clusters start and verify lets its processes contend.
func TestVerify(t *testing.T) {
	inParallel(t)
	command := filepath.Join(t.TempDir(), "sqllock")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", "../../..", "build", "-o", command, "./cmd/sqllock").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, j := range map[string]judged{
		"Galera": {name: "galera", start: cluster.StartGalera, dsns: func(c *cluster.Cluster) []string { return dsns(c.Nodes) }},
		"Vitess": {name: "vitess", start: cluster.StartVitess, dsns: func(c *cluster.Cluster) []string { return dsns(c.Gates()) }},
		"TiDB":   {name: "tidb-cluster", start: cluster.StartTiDB, dsns: func(c *cluster.Cluster) []string { return asURLs("tidb", tidbServers(c)) }},
		"TiDB, taken for MySQL": {
			name: "tidb-cluster", start: cluster.StartTiDB, broken: "exclusion",
			dsns: func(c *cluster.Cluster) []string { return asURLs("mysql", tidbServers(c)) },
		},
		"a node outside of Galera": {
			name: "galera", start: cluster.StartGalera, before: leaveGalera, broken: "exclusion",
			dsns: func(c *cluster.Cluster) []string { return []string{c.Nodes[0].DSN(), c.Nodes[2].DSN()} },
		},
		"Patroni, asynchronous, under failover": {
			name: "patroni", start: cluster.StartPatroniAsynchronous, during: forgetTokens, broken: "tokens",
			dsns: func(c *cluster.Cluster) []string { return []string{allNodes(c, "pgx")} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inParallel(t)
			c := cluster.For(t, j.name, j.start)
			if j.before != nil {
				must(t, j.before(t.Context(), c))
			}
			verifies(t, command, c, j)
		})
	}
}

func verifies(t *testing.T, command string, c *cluster.Cluster, j judged) {
	t.Helper()
	// A host that stands still for half of the time-to-live seems to break a promise.
	arguments := []string{"verify", "--for=40s", "--ttl=20s"}
	if j.during != nil {
		arguments = []string{"verify", "--for=40s"} // tokens are drawn faster
	}
	for _, dsn := range j.dsns(c) {
		arguments = append(arguments, "--dsn="+dsn)
	}
	var out strings.Builder
	cmd := exec.CommandContext(t.Context(), command, arguments...) //nolint:gosec // the program that was just built
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	var harmed error
	if j.during != nil {
		harmed = j.during(t.Context(), c)
	}
	err := cmd.Wait()
	t.Logf("%s", &out)
	must(t, harmed)
	switch exited := new(exec.ExitError); {
	case j.broken == "":
		check.Is(t, err, nil)
		check.Equal(t, "promises kept", strings.Count(out.String(), "✓ "), 5)
	case !errors.As(err, &exited) || exited.ExitCode() != 1:
		t.Errorf("%v", err)
	default:
		check.Contains(t, out.String(), "✗ "+j.broken)
	}
}

// leaveGalera has a node start as a cluster of its own, and returns when the others have noticed that it is gone.
func leaveGalera(ctx context.Context, c *cluster.Cluster) error {
	if err := c.Nodes[2].Kill(); err != nil {
		return err
	}
	if err := c.Nodes[2].StartOutside(ctx, "--wsrep-new-cluster"); err != nil {
		return err
	}
	for {
		members, err := c.Nodes[0].Members(ctx)
		if err == nil && members == 2 || ctx.Err() != nil {
			return ctx.Err()
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// forgetTokens has a failover forget tokens that were drawn, after the tables have reached the replicas.
func forgetTokens(ctx context.Context, c *cluster.Cluster) error {
	drawn := func(p *cluster.Node) (n int) {
		db, err := sqlx.Open(c.Driver, p.DSN())
		if err == nil {
			defer db.Close()
			_ = db.GetContext(ctx, &n, "SELECT COALESCE(MAX(last_value), 0) FROM pg_sequences") // or it is asked again
		}
		return n
	}
	p, err := c.Primary(ctx)
	if err != nil {
		return err
	}
	const some = 20
	for drawn(p) < some && ctx.Err() == nil {
		sleep(ctx, 50*time.Millisecond)
	}
	return cutOffAndKill(ctx, c, c.Nodes, drawn)
}

// asURLs returns URLs that choose the dialect.
func asURLs(scheme string, nodes []*cluster.Node) (all []string) {
	for _, n := range nodes {
		all = append(all, scheme+"://root@"+n.IP()+":4000/sqllock")
	}
	return all
}
