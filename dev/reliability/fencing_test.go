//go:build linux

package reliability

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/dev/reliability/clusters/checker"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/wire"
)

// TestTokensRiseAcrossCrashes has processes compete for locks of all kinds, leaderships among them; one of three is
// fair. Again and again it kills one of them, stops one for longer than its leases last, has all of their
// connections die silently, and kills and restarts the server. The checker judges what they did.
func TestTokensRiseAcrossCrashes(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "crashes", "database, driver", "crashes of the server", "killed", "stopped", "connections died",
		"acquisitions", "of them leaderships", "violations")
	each(t, servers, func(t *testing.T, place int, c cell) {
		b, s := c.newServer(t)
		network, dsn := wire.Through(t, b.dsn)
		// real time: the checker judges what was held, whether or not leases end early.
		f, rounds := newFleet(t, c, dsn, 3, fencingTTL, true), size(2, 20)
		for range rounds {
			f.work()
			must(t, f.Replace(rand.N(f.config.Processes), f.config.Target))
			f.work()
			f.Suspend(t.Context(), rand.N(f.config.Processes), 2*fencingTTL)
			f.work()
			network.Freeze()
			pause(t.Context(), 2*fencingTTL)
			network.LeadTo(network.LeadTo("")) // breaks what is silent
			f.work()
			must(t, s.Kill())
			must(t, s.Restart(t.Context()))
		}
		f.work()
		report := f.end(workload.Target{Driver: c.driver, DSNs: []string{b.dsn}})
		figures.add(place, c.name, rounds, f.Killed, f.Stopped, rounds, report.Acquisitions, report.Kinds["leader"], len(report.Violations()))
	})
}

// TestTokensRiseAcrossFailover kills a primary while locks are acquired, and continues on its
// synchronous replica.
func TestTokensRiseAcrossFailover(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "failover", "database, driver", "failovers", "acquisitions", "violations")
	each(t, servers, func(t *testing.T, place int, c cell) {
		n, all, wrong := size(1, 5), 0, 0
		for range n {
			primary, replica, err := c.pair(t.Context(), scratch(t))
			started(t, err, primary, replica)
			// real time: the checker judges what was held, whether or not leases end early.
			f := newFleet(t, c, primary.DSN(), 3, fencingTTL, true)
			f.work()
			must(t, primary.Kill())
			must(t, c.promote(replica, t.Context()))
			promoted := workload.Target{Driver: c.driver, DSNs: []string{replica.DSN()}}
			for i := range f.config.Processes {
				must(t, f.Replace(i, promoted))
			}
			f.work()
			report := f.end(promoted)
			all, wrong = all+report.Acquisitions, wrong+len(report.Violations())
		}
		figures.add(place, c.name, n, all, wrong)
	})
}

// real time: the checker judges what was held, whether or not leases end early.
const fencingTTL = time.Second

// A fleet is processes that lock, and what they have done.
type fleet struct {
	*workload.Workers

	t      *testing.T
	config workload.Config
}

// newFleet starts processes on an empty database.
func newFleet(t *testing.T, c cell, dsn string, processes int, ttl time.Duration, fair bool) *fleet {
	t.Helper()
	target := workload.Target{Driver: c.driver, DSNs: []string{dsn}}
	must(t, workload.Prepare(t.Context(), target))
	config := workload.Config{
		Target: target, TTL: ttl, Processes: processes, Goroutines: 4, Hasty: true, Fair: fair,
		Seed: rand.Uint64(), History: t.TempDir(),
	}
	return startFleet(t, config)
}

// startFleet starts the processes of a load whose tables exist.
func startFleet(t *testing.T, config workload.Config) *fleet {
	t.Helper()
	t.Logf("seed %d", config.Seed)
	workers := check.Value(workload.Start(config))(t)
	t.Cleanup(workers.Stop)
	return &fleet{workers, t, config}
}

// work waits until each lock has been acquired again, and some more have, and for a random moment.
func (f *fleet) work() {
	f.t.Helper()
	const some = 100
	since := history.Now()
	for want, limit := f.Acquisitions()+some, time.Now().Add(promptly); f.Acquisitions() < want; pause(f.t.Context(), 5*time.Millisecond) {
		if time.Now().After(limit) {
			f.t.Fatal("no lock is acquired")
		}
	}
	if missing := f.AwaitAll(f.t.Context(), since, promptly); len(missing) > 0 {
		f.t.Fatalf("nobody acquires %q", missing)
	}
	// real time: the work under the lock, or a moment at random.
	pause(f.t.Context(), rand.N(50*time.Millisecond))
}

// end ends the processes, and judges what they did by the rows that are left.
func (f *fleet) end(final workload.Target) *checker.Report {
	f.t.Helper()
	f.Stop()
	events := check.Value(history.Read(f.config.History))(f.t)
	rows := check.Value(workload.Rows(f.t.Context(), final))(f.t)
	report := checker.Check(events, rows)
	f.t.Logf("%d acquisitions: %v", report.Acquisitions, report.Kinds)
	if found := report.Violations(); len(found) > 0 || report.Guarded == 0 {
		f.t.Errorf("%d guarded writes, %d violations: %s", report.Guarded, len(found), strings.Join(found[:min(len(found), 10)], "; "))
	}
	return report
}
