//go:build linux

package clusters

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
)

// TestPgBouncer runs the campaign on PostgreSQL behind PgBouncer in transaction pooling, through both
// drivers. A short run takes a minute, since faults and repairs take time.
func TestPgBouncer(t *testing.T) {
	inParallel(t)
	eachDriver(t, func(t *testing.T, driver, name string) {
		c := cluster.For(t, "pgbouncer", cluster.StartBouncer)
		b := newTrial(t, "PgBouncer, "+name, c, workload.Target{Driver: driver, DSNs: []string{c.Nodes[0].DSN()}})
		b.nemeses = []nemesis{
			poolerPause, onlyNode("kill -9 PgBouncer", 0, kill), onlyNode("SIGSTOP PgBouncer", 0, stop),
			onlyNode("cut PgBouncer from PostgreSQL", 0, cutFromPeers), onlyNode("cut PgBouncer from clients", 0, cutFromClients),
			onlyNode("kill -9 PostgreSQL", 1, kill), onlyNode("SIGSTOP PostgreSQL", 1, stop),
		}
		b.short = []string{"PAUSE", "kill -9 PgBouncer"}
		b.mustHold(b.run())
	})
}

// poolerPause is PAUSE, for a while, and RESUME.
var poolerPause = nemesis{"PAUSE", func(ctx context.Context, c *cluster.Cluster, r *rand.Rand) error {
	var pausing sync.WaitGroup
	pausing.Go(func() { _ = c.Console(ctx, "PAUSE") }) // it waits for open transactions, unless RESUME cuts it short
	sleep(ctx, seconds(r, 4, 10))
	if err := c.Console(ctx, "RESUME"); err != nil {
		return err
	}
	pausing.Wait()
	return nil
}}
