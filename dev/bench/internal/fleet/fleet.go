// Package fleet measures what many processes, leases, rows and waiters cost a server.
package fleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dev/bench/internal/parallel"
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/observe"
)

// A fleet is processes, each a registry with a pool of its own, and the leases that each of them renews, in a
// table with so many rows of others. Waiters wait for leases of the first process.
type fleet struct {
	name                             string
	rows, processes, leases, waiters int
}

var fleets = []fleet{
	{name: "one lease, 1 000 rows", rows: 1_000, processes: 1, leases: 1},
	{name: "one lease, 500 000 rows", rows: 500_000, processes: 1, leases: 1},
	{name: "one lease, 1 000 000 rows", rows: 1_000_000, processes: 1, leases: 1},
	{name: "50 processes with 20 leases, 500 000 rows", rows: 500_000, processes: 50, leases: 20},
	{name: "one process with 100 000 leases", processes: 1, leases: 100_000},
	{name: "1 000 processes with one lease", processes: 1_000, leases: 1},
	{name: "10 000 waiters", processes: 1, leases: 10_000, waiters: 10_000},
}

// options are those of all fleets.
type options struct {
	ttl, measured, sustained time.Duration
	snapshot                 bool
}

// Run measures the fleets on servers that it starts, and prints a table. It fails if a lease was lost.
func Run(ctx context.Context, arguments []string) (err error) {
	var o options
	set := flag.NewFlagSet("fleet", flag.ExitOnError)
	set.DurationVar(&o.ttl, "ttl", 10*time.Second, "the time-to-live of the leases")
	set.DurationVar(&o.measured, "for", 30*time.Second, "how long to measure each fleet")
	set.DurationVar(&o.sustained, "sustained", 0, "how long to measure 64 workers on few and on many keys, instead of fleets")
	set.BoolVar(&o.snapshot, "snapshot", false, "with -sustained: a transaction that began after the first minute keeps an old snapshot (PostgreSQL)")
	kinds := set.String("on", "postgres,mariadb", "the servers; also postgres-newest")
	only := set.String("only", "", "fleets whose names contain this")
	if err := set.Parse(arguments); err != nil {
		return err
	}
	scratch, err := server.NewScratchOnDisk()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.Remove()) }()
	for _, kind := range strings.Split(*kinds, ",") {
		err = errors.Join(err, runOn(ctx, kind, filepath.Join(scratch.Dir, kind), *only, o))
	}
	return err
}

func runOn(ctx context.Context, kind, dir, only string, o options) (err error) {
	started, err := durable.Start(ctx, kind, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, started.Stop()) }()
	if o.sustained > 0 {
		return sustain(ctx, kind, started, o)
	}
	fmt.Printf("\n%s, time-to-live %v\n\n| fleet | rows read/s | a lease and beat | WAL kB/s | CPU of the server | beats | slowest | mean | failed | lost |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n", kind, o.ttl)
	for _, f := range fleets {
		if strings.Contains(f.name, only) {
			err = errors.Join(err, f.measure(ctx, started, o))
		}
	}
	return err
}

// beats are what the renewals of all processes have reported.
type beats struct {
	mu            sync.Mutex
	n, failed     int
	slowest, took time.Duration
}

func (b *beats) observers() []*observe.Observer {
	return []*observe.Observer{{Renewal: func(_ context.Context, e observe.Renewal) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.n++
		b.slowest, b.took = max(b.slowest, e.Took), b.took+e.Took
		if e.Err != nil {
			b.failed++
			fmt.Fprintln(os.Stderr, "beat:", e.Err)
		}
	}}}
}

func (b *beats) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resetLocked()
}

func (b *beats) resetLocked() { b.n, b.failed, b.slowest, b.took = 0, 0, 0, 0 }

// timesLocked returns the mean and the longest time of a beat.
func (b *beats) timesLocked() (mean, slowest time.Duration) {
	const unit = 100 * time.Microsecond
	return (b.took / time.Duration(max(1, b.n))).Round(unit), b.slowest.Round(unit)
}

// atOnce is how many leases are acquired, and registries closed, at a time.
const atOnce = 256

var errLost = errors.New("leases were lost")

func (f fleet) measure(ctx context.Context, s *durable.Server, o options) (err error) {
	gauge, err := newGauge(ctx, s, f.rows)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gauge.close()) }()
	var seen beats
	var registries []*sqllock.Registry
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		parallel.Do(len(registries), atOnce, func(i int) error { return registries[i].Close(closing) }) //nolint:errcheck // the tables go
	}()
	for range f.processes + min(1, f.waiters) {
		r, err := open(ctx, s, sqllock.RegistryOptions{TTL: o.ttl, Observers: seen.observers()})
		if err != nil {
			return err
		}
		registries = append(registries, r)
	}
	leases := make([]*sqllock.Lease, f.processes*f.leases)
	if err := parallel.Do(len(leases), atOnce, func(i int) (err error) {
		leases[i], err = registries[i/f.leases].TryLock(ctx, key(i))
		return err
	}); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	waiting, stop := context.WithCancel(ctx)
	var waiters sync.WaitGroup
	for i := range f.waiters {
		waiters.Go(func() { _, _ = registries[f.processes].Lock(waiting, key(i)) }) // until stop
	}
	time.Sleep(o.ttl) // the first beats, and the waiters' first tries, are over
	seen.reset()
	before, err := gauge.read(ctx)
	if err != nil {
		stop()
		return err
	}
	time.Sleep(o.measured)
	after, err := gauge.read(ctx)
	stop()
	waiters.Wait()
	lost := lostOf(leases)
	seen.report(f, before, after, len(leases), lost, o)
	if lost > 0 {
		err = errors.Join(err, fmt.Errorf("%s: %w: %d", f.name, errLost, lost))
	}
	return err
}

func (b *beats) report(f fleet, before, after reading, leases, lost int, o options) {
	b.mu.Lock()
	defer b.mu.Unlock()
	seconds := after.at.Sub(before.at).Seconds()
	rows := float64(after.rows-before.rows) / seconds
	mean, slowest := b.timesLocked()
	fmt.Printf("| %s | %.0f | %.1f | %.0f | %.1f %% | %d | %v | %v | %d | %d |\n", f.name, rows, rows*(o.ttl/3).Seconds()/float64(leases),
		float64(after.wal-before.wal)/seconds/1000, (after.cpu-before.cpu).Seconds()/seconds*100,
		b.n, slowest, mean, b.failed, lost)
}

func key(i int) string { return fmt.Sprintf("fleet-%d", i) }

func open(ctx context.Context, s *durable.Server, o sqllock.RegistryOptions) (*sqllock.Registry, error) {
	if s.Kind == durable.MariaDB {
		return mysqllock.Open(ctx, s.Server.DSN(), &mysqllock.Options{Registry: o})
	}
	return pgxlock.Open(ctx, s.Server.DSN(), &pgxlock.Options{Registry: o})
}
