package dashboard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/migrations"
	sqllockotel "github.com/sqllock/sqllock/monitor/otel"
	sqllockprom "github.com/sqllock/sqllock/monitor/prometheus"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/leader"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// gathered are the series of a registry, with their values: the count of a histogram.
type gathered map[string]float64

func gather(t *testing.T, from prometheus.Gatherer) gathered {
	t.Helper()
	return series(check.Value(from.Gather())(t))
}

func series(families []*dto.MetricFamily) gathered {
	all := make(gathered)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := make([]string, 0, len(m.GetLabel()))
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			all[fmt.Sprintf("%s{%s} %s", family.GetName(), strings.Join(labels, ","), family.GetType())] = value
		}
	}
	return all
}

// both returns an observer for Prometheus, one for OpenTelemetry, and what they measure.
func both(t *testing.T, lock func(string) string, rows *sqllock.Repository) (observers []*observe.Observer, prom, otel *prometheus.Registry) {
	t.Helper()
	prom, otel = prometheus.NewRegistry(), prometheus.NewRegistry()
	collector := sqllockprom.New(&sqllockprom.Options{Lock: lock, Rows: rows})
	must(t, prom.Register(collector))
	reader := check.Value(exporter.New(exporter.WithRegisterer(otel), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo()))(t)
	observer := check.Value(sqllockotel.New(&sqllockotel.Options{Lock: lock, Rows: rows, MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}))(t)
	return []*observe.Observer{collector.Observer(), observer}, prom, otel
}

// want are all series after everything, apart from the buckets.
var want = gathered{
	`sqllock_acquire_duration_seconds{outcome="acquired"} HISTOGRAM`:   6,
	`sqllock_acquire_duration_seconds{outcome="cancelled"} HISTOGRAM`:  1,
	`sqllock_acquire_duration_seconds{outcome="error"} HISTOGRAM`:      1,
	`sqllock_acquire_duration_seconds{outcome="held"} HISTOGRAM`:       1,
	`sqllock_acquire_duration_seconds{outcome="lost"} HISTOGRAM`:       1,
	`sqllock_acquire_duration_seconds{outcome="timeout"} HISTOGRAM`:    1,
	`sqllock_hold_duration_seconds{end="handed_on"} HISTOGRAM`:         1,
	`sqllock_hold_duration_seconds{end="lost"} HISTOGRAM`:              2,
	`sqllock_hold_duration_seconds{end="unlocked"} HISTOGRAM`:          2,
	`sqllock_job_last_duration_seconds{name="report�"} GAUGE`:          1,
	`sqllock_job_last_success_timestamp_seconds{name="report�"} GAUGE`: 1e9 + 1,
	`sqllock_job_runs_total{name="report�",outcome="ended"} COUNTER`:   0,
	`sqllock_job_runs_total{name="report�",outcome="error"} COUNTER`:   0,
	`sqllock_job_runs_total{name="report�",outcome="failed"} COUNTER`:  1,
	`sqllock_job_runs_total{name="report�",outcome="ran"} COUNTER`:     1,
	`sqllock_job_runs_total{name="report�",outcome="skipped"} COUNTER`: 1,
	`sqllock_leader_terms_total{election="scheduler"} COUNTER`:         1,
	`sqllock_leader{election="scheduler"} GAUGE`:                       1,
	`sqllock_leases_held{} GAUGE`:                                      2,
	`sqllock_leases_lost_total{reason="expired"} COUNTER`:              1,
	`sqllock_leases_lost_total{reason="taken"} COUNTER`:                1,
	`sqllock_oldest_hold_seconds{} GAUGE`:                              0,
	`sqllock_oldest_wait_seconds{} GAUGE`:                              0,
	`sqllock_renewal_duration_seconds{outcome="error"} HISTOGRAM`:      1,
	`sqllock_renewal_duration_seconds{outcome="renewed"} HISTOGRAM`:    2,
	`sqllock_renewal_left_ratio{} GAUGE`:                               1,
	`sqllock_waiters{} GAUGE`:                                          1,
}

func (g gathered) expect(t *testing.T, who string, want gathered) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got, ok := g[name]; !ok || got != want[name] {
			t.Errorf("%s: %s: %v (%v), want %v", who, name, got, ok, want[name])
		}
	}
	for name, value := range g {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s %v is not expected", who, name, value)
		}
	}
}

// TestBothMeasureTheSame has everything happen once, and compares the names, the types, the labels and
// the values of both modules.
func TestBothMeasureTheSame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		observers, prom, otel := both(t, nil, nil)
		s, stop := everything(t, observers...)
		gather(t, prom).expect(t, "prometheus", want)
		gather(t, otel).expect(t, "otel", want)
		problems, err := testutil.GatherAndLint(prom)
		if err != nil || len(problems) > 0 {
			t.Errorf("promlint: %v, %v", problems, err)
		}

		stop()
		synctest.Wait()
		ended := maps.Clone(want)
		delete(ended, `sqllock_leader{election="scheduler"} GAUGE`) // it has retired
		ended[`sqllock_acquire_duration_seconds{outcome="cancelled"} HISTOGRAM`]++
		ended[`sqllock_hold_duration_seconds{end="unlocked"} HISTOGRAM`] += 2
		ended[`sqllock_leases_held{} GAUGE`], ended[`sqllock_waiters{} GAUGE`] = 0, 0
		gather(t, prom).expect(t, "prometheus, ended", ended)
		gather(t, otel).expect(t, "otel, ended", ended)

		must(t, check.ErrorOf(s.registry.Lock(t.Context(), "closed")))
		must(t, s.registry.Close(t.Context()))
		for who, registry := range map[string]*prometheus.Registry{"prometheus": prom, "otel": otel} {
			if n := gather(t, registry)[`sqllock_hold_duration_seconds{end="closed"} HISTOGRAM`]; n != 1 {
				t.Errorf("%s: %v leases closed", who, n)
			}
		}
	})
}

// TestKeysBecomeLabelsIfTheyAreMapped maps keys to two names. Half of an é is no UTF-8 and is replaced.
func TestKeysBecomeLabelsIfTheyAreMapped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		observers, prom, otel := both(t, func(key string) string { return key[:6] }, nil)
		s := newStage(t, sqllock.RegistryOptions{Observers: observers, NoRenew: true})
		for _, key := range []string{"orders/1", "orders/2", "usersé"} {
			must(t, check.ErrorOf(s.registry.Lock(t.Context(), key)))
		}
		for who, registry := range map[string]*prometheus.Registry{"prometheus": prom, "otel": otel} {
			gather(t, registry).expect(t, who, gathered{
				`sqllock_acquire_duration_seconds{lock="orders",outcome="acquired"} HISTOGRAM`: 2,
				`sqllock_acquire_duration_seconds{lock="users�",outcome="acquired"} HISTOGRAM`: 1,
				`sqllock_leases_held{lock="orders"} GAUGE`:                                     2,
				`sqllock_leases_held{lock="users�"} GAUGE`:                                     1,
				// They are there before a lease is lost: the alert is about their increase.
				`sqllock_leases_lost_total{lock="orders",reason="expired"} COUNTER`: 0,
				`sqllock_leases_lost_total{lock="orders",reason="taken"} COUNTER`:   0,
				`sqllock_leases_lost_total{lock="users�",reason="expired"} COUNTER`: 0,
				`sqllock_leases_lost_total{lock="users�",reason="taken"} COUNTER`:   0,
				`sqllock_oldest_hold_seconds{lock="orders"} GAUGE`:                  0,
				`sqllock_oldest_hold_seconds{lock="users�"} GAUGE`:                  0,
				`sqllock_oldest_wait_seconds{lock="orders"} GAUGE`:                  0,
				`sqllock_oldest_wait_seconds{lock="users�"} GAUGE`:                  0,
				`sqllock_renewal_left_ratio{} GAUGE`:                                1,
				`sqllock_waiters{lock="orders"} GAUGE`:                              0,
				`sqllock_waiters{lock="users�"} GAUGE`:                              0,
			})
		}
	})
}

// TestPermitsAndReadersHaveTheLabelOfTheirLock has three readers, a writer that waits for them, and several permits, each of which
// is a row with a key of its own.
func TestPermitsAndReadersHaveTheLabelOfTheirLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		name := func(key string) string { name, _, _ := strings.Cut(key, "/"); return name }
		observers, prom, otel := both(t, name, nil)
		s := newStage(t, sqllock.RegistryOptions{Observers: observers})
		lock := check.Value(rwlock.New(s.registry, "orders/42"))(t)
		writer := check.Begin(func() error {
			time.Sleep(time.Second)
			return check.Value(lock.Lock(t.Context()))(t).Unlock(t.Context())
		})
		for range 3 {
			reader := check.Value(lock.RLock(t.Context()))(t)
			time.AfterFunc(10*time.Second, func() { must(t, reader.Unlock(t.Context())) })
		}
		must(t, <-writer)
		permits := check.Value(check.Value(semaphore.New(s.registry, "orders/7", 3))(t).Acquire(t.Context(), 2))(t)
		must(t, check.ErrorOf(s.registry.Lock(permits.Context(), "users/1")))
		must(t, permits.Unlock(t.Context()))
		synctest.Wait() // the writer may have seen the readers' rows go before the end of their leases was told
		for who, registry := range map[string]*prometheus.Registry{"prometheus": prom, "otel": otel} {
			got := gather(t, registry)
			for series := range got {
				if strings.Contains(series, `lock="`) && !strings.Contains(series, `lock="orders"`) && !strings.Contains(series, `lock="users"`) {
					t.Errorf("%s: %s", who, series)
				}
			}
			if held, other := got[`sqllock_leases_held{lock="orders"} GAUGE`], got[`sqllock_leases_held{lock="users"} GAUGE`]; held != 0 || other != 1 {
				t.Errorf("%s: %v of orders are held, and %v of users", who, held, other)
			}
		}
	})
}

// TestTheOldestWaitAndHoldAreSeenWhileTheyLast has one lock held and waited for while others come and go, and a leader, which
// holds its lock for as long as it lives. Rows are handed on.
func TestTheOldestWaitAndHoldAreSeenWhileTheyLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		observers, prom, otel := both(t, nil, nil)
		s := newStage(t, sqllock.RegistryOptions{Observers: observers, HandOff: true})
		ctx, cancel := context.WithCancel(t.Context())
		elector := check.Value(leader.New(s.registry, "scheduler", nil))(t)
		led := check.Begin(func() error {
			return elector.Run(ctx, func(ctx context.Context, _ *sqllock.Lease) error { <-ctx.Done(); return nil })
		})
		expect := func(when string, hold, wait float64) {
			t.Helper()
			for who, registry := range map[string]*prometheus.Registry{"prometheus": prom, "otel": otel} {
				got := gather(t, registry)
				for what, want := range map[string]float64{"hold": hold, "wait": wait} {
					if n := got["sqllock_oldest_"+what+"_seconds{} GAUGE"]; math.Abs(n-want) > 1 { // a poll may come later
						t.Errorf("%s, %s: the oldest %s is of %v s, want %v", who, when, what, n, want)
					}
				}
			}
		}
		time.Sleep(time.Hour)
		expect("only a leader", 0, 0)
		held := check.Value(s.registry.Lock(t.Context(), "held"))(t)
		time.Sleep(5 * time.Second)
		waiting := check.Begin(func() error { return check.ErrorOf(s.registry.Lock(ctx, "held")) })
		for range 4 {
			must(t, check.Value(s.registry.Lock(t.Context(), "others"))(t).Unlock(t.Context()))
			time.Sleep(10 * time.Second)
		}
		expect("a caller waits", 45, 40)
		must(t, held.Unlock(t.Context()))
		must(t, <-waiting)
		expect("it was handed the lock", 0, 0)
		time.Sleep(20 * time.Second)
		expect("it holds it", 20, 0)
		must(t, s.registry.Close(t.Context()))
		cancel()
		if err := <-led; !errors.Is(err, sqllock.ErrClosed) {
			t.Error(err)
		}
		expect("closed", 0, 0)
	})
}

// heldFor returns for how long all locks were held that are not any more, in seconds.
func heldFor(t *testing.T, from prometheus.Gatherer) (sum float64) {
	t.Helper()
	for _, family := range check.Value(from.Gather())(t) {
		if family.GetName() != "sqllock_hold_duration_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			sum += m.GetHistogram().GetSampleSum()
		}
	}
	return sum
}

// TestACallerInTurnWaits has another process hold what callers of semaphores and of read-write locks wait for: the first of
// them has the turn, which is not what it waits for.
func TestACallerInTurnWaits(t *testing.T) {
	t.Parallel()
	type claim func(context.Context, *sqllock.Registry) (*sqllock.Lease, error)
	permit := func(ctx context.Context, r *sqllock.Registry) (*sqllock.Lease, error) {
		return check.Value(semaphore.New(r, "k", 1))(t).Acquire(ctx, 1)
	}
	of := func(lock func(*rwlock.Lock, context.Context) (*sqllock.Lease, error)) claim {
		return func(ctx context.Context, r *sqllock.Registry) (*sqllock.Lease, error) {
			return lock(check.Value(rwlock.New(r, "k"))(t), ctx)
		}
	}
	for name, test := range map[string]struct {
		hold, wait claim
		held       float64 // by a caller that waits
	}{
		"a semaphore":              {permit, permit, 0},
		"a reader":                 {of((*rwlock.Lock).Lock), of((*rwlock.Lock).RLock), 0},
		"a writer behind a reader": {of((*rwlock.Lock).RLock), of((*rwlock.Lock).Lock), 1}, // it keeps out new readers
		"a writer behind a writer": {of((*rwlock.Lock).Lock), of((*rwlock.Lock).Lock), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				observers, prom, otel := both(t, nil, nil)
				s := newStage(t, sqllock.RegistryOptions{Observers: observers})
				held := check.Value(test.hold(t.Context(), s.other))(t)
				waiting := make([]<-chan error, 2)
				for i := range waiting {
					waiting[i] = check.Begin(func() error {
						lease, err := test.wait(t.Context(), s.registry)
						if err != nil {
							return err
						}
						time.Sleep(time.Second)
						return lease.Unlock(t.Context())
					})
					time.Sleep(20 * time.Second)
				}
				expect := func(when string, want gathered) {
					t.Helper()
					for who, registry := range map[string]*prometheus.Registry{"prometheus": prom, "otel": otel} {
						got := gather(t, registry)
						for what, n := range want {
							off := math.Abs(got[what+"{} GAUGE"] - n)
							if strings.HasSuffix(what, "_seconds") {
								off-- // a poll may come later
							}
							if off > 0 {
								t.Errorf("%s, %s: %s is %v, want %v", who, when, what, got[what+"{} GAUGE"], n)
							}
						}
					}
				}
				expect("two wait", gathered{"sqllock_oldest_wait_seconds": 40, "sqllock_oldest_hold_seconds": 40 * test.held, "sqllock_waiters": 2, "sqllock_leases_held": test.held})
				must(t, held.Unlock(t.Context()))
				for _, one := range waiting {
					must(t, <-one)
				}
				expect("all have ended", gathered{"sqllock_oldest_wait_seconds": 0, "sqllock_oldest_hold_seconds": 0, "sqllock_waiters": 0, "sqllock_leases_held": 0})
				for who, registry := range map[string]*prometheus.Registry{"prometheus": prom, "otel": otel} {
					if got, want := heldFor(t, registry), 2+40*test.held; math.Abs(got-want) > 1 {
						t.Errorf("%s: locks were held for %v s, want %v", who, got, want)
					}
				}
			})
		})
	}
}

// TestEndedElectionsAreForgotten has many roles end, whose names are no UTF-8. The last ones stay, so that their
// terms are scraped.
func TestEndedElectionsAreForgotten(t *testing.T) {
	t.Parallel()
	observers, prom, otel := both(t, nil, nil)
	const roles, kept = 1000, 100
	for i := range roles {
		for _, e := range []observe.Election{
			{State: observe.ElectorCandidate},
			{State: observe.ElectorLeader, Holder: "h"},
			{State: observe.ElectorCandidate, Holder: "h"},
			{State: observe.ElectorRetired},
		} {
			e.Role = fmt.Sprint("role\xff", i)
			for _, o := range observers {
				o.Election(t.Context(), e)
			}
		}
	}
	for who, registry := range map[string]*prometheus.Registry{"prometheus": prom, "otel": otel} {
		terms, leaders := 0, 0
		got := gather(t, registry)
		for name := range got {
			switch {
			case strings.HasPrefix(name, "sqllock_leader_terms_total"):
				terms++
			case strings.HasPrefix(name, "sqllock_leader{"):
				leaders++
			}
		}
		if terms != kept || leaders != 0 || got[fmt.Sprintf(`sqllock_leader_terms_total{election="role�%d"} COUNTER`, roles-1)] != 1 {
			t.Errorf("%s: %d series of terms and %d of leaders after %d elections", who, terms, leaders, roles)
		}
	}
}

// TestRowsAreCounted counts them at most every ten seconds, and not while the database fails.
func TestRowsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, sqllock.RegistryOptions{})
		_, prom, otel := both(t, nil, s.repository)
		count := func() (held, expired float64, ok bool) {
			t.Helper()
			families, _ := otel.Gather() // the metric of the rows may fail
			a, b := gather(t, prom), series(families)
			for _, state := range []string{"held", "expired"} {
				name := `sqllock_rows{state="` + state + `"} GAUGE`
				if a[name] != b[name] {
					t.Errorf("%s: %v, and %v", name, a[name], b[name])
				}
			}
			const failed = `sqllock_rows_failed{} GAUGE`
			held, ok = a[`sqllock_rows{state="held"} GAUGE`]
			if ok != (a[failed] == 0) || a[failed] != b[failed] {
				t.Errorf("counted: %v; %s: %v, and %v", ok, failed, a[failed], b[failed])
			}
			if _, there := a[failed]; !there {
				t.Errorf("no %s", failed)
			}
			return held, a[`sqllock_rows{state="expired"} GAUGE`], ok
		}
		for i, key := range []string{"a", "b", "c"} {
			lease, err := s.repository.Acquire(t.Context(), key, s.repository.NewHolder(), time.Duration(i+1)*time.Minute)
			if must(t, err); !lease.Acquired {
				t.Fatal("not acquired")
			}
		}
		elsewhere := check.Value(sqllock.NewRepository(t.Context(), s.pool, dialect.SQLite(), &sqllock.RepositoryOptions{Region: "elsewhere"}))(t)
		must(t, check.ErrorOf(elsewhere.Acquire(t.Context(), "a", elsewhere.NewHolder(), time.Hour)))
		if held, expired, ok := count(); held != 3 || expired != 0 || !ok {
			t.Errorf("%v held, %v expired, %v", held, expired, ok)
		}
		must(t, s.repository.ReleaseAll(t.Context()))
		time.Sleep(9 * time.Second)
		if held, _, _ := count(); held != 3 {
			t.Errorf("%v held: they were counted too soon", held)
		}
		time.Sleep(2 * time.Second)
		if held, _, ok := count(); held != 0 || !ok {
			t.Errorf("%v held, %v", held, ok)
		}
		time.Sleep(11 * time.Second)
		s.network.Follow(func(context.Context, flaky.Moment) error { return errGone })
		if _, _, ok := count(); ok {
			t.Error("counted although the database fails")
		}
		s.network.Follow(nil)
	})
}

// TestRowsAreCountedByTheDatabase has a table whose rows would take some megabytes. It runs alone, because
// it counts allocations.
func TestRowsAreCountedByTheDatabase(t *testing.T) {
	const rows = 20_000
	db := dbtest.SQLite(t) // with its own clock: that of virtual time allocates
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	must(t, check.ErrorOf(db.DB.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO INT_LOCK SELECT i, 'DEFAULT', 'holder', '2000-01-01', CASE WHEN i % 4 = 0 THEN '2001-01-01' ELSE '9000-01-01' END FROM n`, rows)))
	repository := check.Value(sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, nil))(t)
	_, prom, otel := both(t, nil, repository)
	for who, registry := range map[string]*prometheus.Registry{"prometheus": prom, "otel": otel} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := gather(t, registry)
		runtime.ReadMemStats(&after)
		if held, expired := got[`sqllock_rows{state="held"} GAUGE`], got[`sqllock_rows{state="expired"} GAUGE`]; held != rows*3/4 || expired != rows/4 {
			t.Errorf("%s: %v held, %v expired", who, held, expired)
		}
		if n := after.Mallocs - before.Mallocs; n > rows {
			t.Errorf("%s: a scrape allocates %d times for %d rows", who, n, rows)
		}
	}
}

// TestWhatIsLeftIsOfTheShortestLease reads it after renewals that succeed, that fail, and without a
// lease to renew: one that is not renewed is held all the time.
func TestWhatIsLeftIsOfTheShortestLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		observers, prom, otel := both(t, nil, nil)
		s := newStage(t, sqllock.RegistryOptions{Observers: observers})
		expect := func(left time.Duration) {
			t.Helper()
			synctest.Wait()
			for who, registry := range map[string]*prometheus.Registry{"prometheus": prom, "otel": otel} {
				const name = `sqllock_renewal_left_ratio{} GAUGE`
				if got := gather(t, registry)[name]; got != left.Seconds()/ttl.Seconds() {
					t.Errorf("%s: %v, want %v", who, got, left.Seconds()/ttl.Seconds())
				}
			}
		}
		plain := check.Value(s.registry.Obtain("plain"))(t)
		held := check.Value(plain.WithAutoRenew(false).WithTTL(time.Hour).Lock(t.Context()))(t)
		lease := check.Value(s.registry.Lock(t.Context(), "k"))(t)
		const margin = 500 * time.Millisecond
		time.Sleep(ttl / 3)
		expect(ttl - margin - ttl/3)
		s.network.Follow(func(context.Context, flaky.Moment) error { return errGone })
		time.Sleep(ttl/3 + ttl/15)
		expect(ttl - margin - ttl/3 - ttl/15)
		s.network.Follow(nil)
		must(t, lease.Unlock(t.Context()))
		expect(ttl)
		must(t, held.Unlock(t.Context()))
	})
}
