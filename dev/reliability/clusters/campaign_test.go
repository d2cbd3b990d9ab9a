//go:build linux

package clusters

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/reliability/clusters/checker"
	"github.com/sqllock/sqllock/dev/reliability/clusters/cluster"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/internal/test/check"
)

var must = check.Must

var (
	full   = flag.Duration("full", 0, "run faults for so long on each cluster (default: one fault of each kind that a short run has)")
	page   = flag.String("page", "", "write the figures to this page")
	seed   = flag.Uint64("seed", 0, "seed of the random choices (default: a random one)")
	keep   = flag.String("history", "", "keep the histories in this directory (default: a temporary one)")
	faults = flag.String("faults", "", "only faults whose names contain this text")
)

// A trial is a load on a cluster that is broken meanwhile.
type trial struct {
	name    string
	cluster *cluster.Cluster
	config  workload.Config
	nemeses []nemesis
	// short names the nemeses of a short run; nil is all.
	short []string
	// final leads to each node that must have all rows in the end.
	final []workload.Target

	t       *testing.T
	log     *history.Writer
	workers *workload.Workers
	faults  int
	slow    []string // what could not be acquired in time after a repair
	took    time.Duration
	events  []history.Event
}

// recovery is how long it may take after a repair, beyond a time-to-live, until each lock can be
// acquired: a row without a holder lasts until its time-to-live ends, and others may have the lock then. A short run
// proves that it can be acquired at all; the machine may be busy.
func (b *trial) recovery() time.Duration {
	if *full > 0 {
		return 11*time.Second + b.config.MaxHold
	}
	return time.Minute
}

// newTrial prepares a trial with the standard load.
func newTrial(t *testing.T, name string, c *cluster.Cluster, target workload.Target) *trial {
	t.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64() //nolint:gosec // not a secret
	}
	dir := historyDir(t, name)
	t.Logf("%s: -seed %d, history in %s", name, s, dir)
	log := check.Value(history.NewWriter(dir, "faults"))(t)
	t.Cleanup(func() { must(t, log.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, workload.Prepare(ctx, target))
	return &trial{name: name, cluster: c, config: workload.Standard(target, s, dir), final: []workload.Target{target}, t: t, log: log}
}

// inParallel lets a run break several clusters at once, as many as -parallel says, since tests mostly
// wait.
func inParallel(t *testing.T) {
	t.Helper()
	t.Parallel()
}

func historyDir(t *testing.T, name string) string {
	t.Helper()
	if *keep == "" {
		dir := check.Value(os.MkdirTemp("", "sqllock-history-"))(t) //nolint:usetesting // it is kept if the test fails
		t.Cleanup(func() {
			if !t.Failed() {
				must(t, os.RemoveAll(dir))
			}
		})
		return dir
	}
	dir := filepath.Join(*keep, strings.NewReplacer(" ", "-", ",", "", "/", "-").Replace(name)+time.Now().Format("-150405"))
	must(t, os.MkdirAll(dir, 0o700))
	return dir
}

// run breaks the cluster while workers lock, and judges what they did.
func (b *trial) run() *checker.Report {
	b.t.Helper()
	var err error
	b.workers, err = workload.Start(b.config)
	must(b.t, err)
	defer b.workers.Stop()
	b.recovered("the start", history.Now(), time.Minute)
	r := rand.New(rand.NewPCG(b.config.Seed, 0)) //nolint:gosec // repeatable
	began := time.Now()
	for n := range b.schedule(r) {
		if *full > 0 && time.Since(began) > *full {
			break
		}
		b.fault(n, r)
	}
	took := time.Since(began)
	b.workers.Stop()
	must(b.t, b.cluster.Heal(b.t.Context())) // PgBouncer may end when workers do
	b.acquireAll()
	return b.judge(took)
}

// schedule returns the nemeses in a random order, again and again if the campaign is a full one.
func (b *trial) schedule(r *rand.Rand) func(yield func(nemesis) bool) {
	return func(yield func(nemesis) bool) {
		for {
			for _, i := range r.Perm(len(b.nemeses)) {
				n := b.nemeses[i]
				switch {
				case *faults != "" && !strings.Contains(n.name, *faults):
				case *faults == "" && *full == 0 && b.short != nil && !slices.Contains(b.short, n.name):
				case !yield(n):
					return
				}
			}
			if *full == 0 {
				return
			}
		}
	}
}

// fault does harm, heals it, and waits until all locks can be acquired again.
func (b *trial) fault(n nemesis, r *rand.Rand) {
	b.t.Helper()
	ctx := b.t.Context()
	e := history.Event{Op: history.Fault, ID: n.name, From: history.Now()}
	if err := n.harm(ctx, b.cluster, r); err != nil {
		e.Err = err.Error()
		b.t.Errorf("%s: %v", n.name, err)
	}
	restarts := b.cluster.Restarts
	if err := b.cluster.Heal(ctx); err != nil {
		b.t.Fatalf("heal after %s: %v", n.name, err)
	}
	if b.cluster.Restarts > restarts {
		e.ID += ", then all nodes anew"
		b.t.Logf("after %s the nodes did not find each other: all were killed", n.name)
	}
	e.To = history.Now()
	b.recovered(n.name, e.To, b.config.TTL+b.recovery())
	b.log.Add(e)
	b.faults++
	sleep(ctx, seconds(r, 1, 4))
}

// recovered waits until each lock has been acquired since then. A node that ends meanwhile, as PgBouncer
// does when clients cancel statements, is started again, as an init does.
func (b *trial) recovered(what string, since int64, limit time.Duration) {
	b.t.Helper()
	var missing []string
	for end := time.Now().Add(limit); ; {
		last := time.Now().After(end)
		if missing = b.workers.AwaitAll(b.t.Context(), since, time.Second); len(missing) == 0 {
			return
		}
		switch {
		case slices.ContainsFunc(b.cluster.Nodes, func(n *cluster.Node) bool { return !n.IsUp() }):
			b.t.Logf("after %s a node has ended by itself", what)
			must(b.t, b.cluster.Heal(b.t.Context()))
			end = time.Now().Add(limit)
			continue
		case !last:
			continue
		}
		break
	}
	b.slow = append(b.slow, fmt.Sprintf("%v after %s nobody has acquired %v", limit, what, missing))
}

// acquireAll acquires each lock, now that no worker is left.
func (b *trial) acquireAll() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), b.config.TTL+b.recovery())
	defer cancel()
	db, err := b.config.Target.Open(0, 4)
	must(b.t, err)
	defer db.Close()
	repository, err := sqllock.NewRepository(ctx, db.DB, b.config.Target.Dialect(), b.config.Repository())
	must(b.t, err)
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: b.config.TTL, NoRenew: true})
	must(b.t, err)
	ways, err := workload.Ways(registry)
	must(b.t, err)
	for _, way := range ways {
		if err := way.Try(ctx); err != nil {
			b.slow = append(b.slow, fmt.Sprintf("in the end: %v", err))
		}
	}
}

// judge checks the history against the rows that each node has in the end.
func (b *trial) judge(took time.Duration) *checker.Report {
	b.t.Helper()
	events, err := history.Read(b.config.History)
	must(b.t, err)
	var report *checker.Report
	for i, target := range b.final {
		rows := b.rows(target)
		found := checker.Check(events, rows)
		if i > 0 {
			found = &checker.Report{Stale: found.Stale, Missing: found.Missing} // the rest is the same
			report.Stale, report.Missing = append(report.Stale, found.Stale...), append(report.Missing, found.Missing...)
			continue
		}
		report = found
	}
	b.took, b.events = took, events
	b.t.Log(b.summary(report))
	return report
}

// rows reads what was written, as soon as the node answers.
func (b *trial) rows(target workload.Target) []checker.Row {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	for {
		rows, err := workload.Rows(ctx, target)
		if err == nil {
			return rows
		}
		if ctx.Err() != nil {
			b.t.Fatal(err)
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

// mustHold fails the test if a promise was broken.
func (b *trial) mustHold(r *checker.Report) {
	b.t.Helper()
	if len(r.Violations()) > 0 {
		final.Store(true)
	}
	for _, violation := range slices.Concat(r.Violations(), b.slow) {
		b.t.Errorf("%s: %s", b.name, violation)
	}
	if b.t.Failed() {
		b.t.Logf("%s: the history is in %s", b.name, b.config.History)
	}
	for _, kind := range workload.Kinds {
		if r.Kinds[kind] == 0 || r.Guarded == 0 {
			b.t.Errorf("%s: %v", kind, errNothing)
		}
	}
	if n := b.opened(); n == 0 || n == r.Acquisitions {
		b.t.Errorf("%d of %d were acquired over pools of Open: %v", n, r.Acquisitions, errNothing)
	}
	must(b.t, b.publish(r))
}

var errNothing = errors.New("nothing was acquired or written, so the trial proves nothing")
