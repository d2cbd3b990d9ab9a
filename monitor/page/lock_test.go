package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// TestALockHasItsOwnPage follows the link of a lock while it is held, and after that.
func TestALockHasItsOwnPage(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.row("plain", "billing", "web-2-00000000001", time.Minute, time.Minute)
		others := check.Value(f.registry.Repository().LockKey("invoices"))(f.T)
		f.row(others, sqllock.DefaultRegion, "web-2-00000000002", time.Minute, time.Minute)
		lease := check.Value(f.registry.Lock(f.Context(), "orders/42"))(f.T)
		began := time.Now().Format(time.DateTime)
		time.Sleep(12 * time.Second)
		h := f.handler()
		list := f.get(h, "/?q=e&sort=key").Body.String()
		for link, want := range map[string][]string{
			"/?key=orders%2F42&q=e&sort=key":     {"<bdi>orders/42</bdi>", lease.Holder(), began, "12 s", "held here", "acquired here", `href="./?q=e&amp;sort=key"`},
			"/?in=billing&of=plain&q=e&sort=key": {"<bdi>plain</bdi>", "web-2-00000000001", "billing"},
			"/?key=" + strings.Repeat("k", 300):  {"This lock is free"},
			"/live?key=orders%2F42":              {"<bdi>orders/42</bdi>"},
			"/?key=invoices":                     {"<dt>Key</dt><dd><bdi>invoices</bdi>", "web-2-00000000002"},
			"/?key=%FF":                          {"No lock matches"},
			"/?in=billing&state=held":            {">orders/42<"},
		} {
			body := f.get(h, link).Body.String()
			for _, text := range want {
				check.Contains(t, body, text)
			}
			if strings.Contains(link, "q=e") && !strings.Contains(list, `href=".`+strings.ReplaceAll(link, "&", "&amp;")+`"`) {
				t.Errorf("no link to %s in %s", link, list)
			}
		}
		must(f.T, lease.Unlock(f.Context()))
		time.Sleep(time.Minute)
		l := f.json(h, "?key=orders/42")
		if len(l.Locks) != 0 || l.Seen.Acquired != 1 || l.Seen.LongestHold != 12 || l.Seen.Events[0].What != "released" {
			t.Errorf("%+v", l)
		}
		check.Contains(t, f.get(h, "/?key=orders/42").Body.String(), "This lock is free")
	})
}

// TestPermitsAreOneLock has two of three permits held, and a caller that waits for two.
func TestPermitsAreOneLock(t *testing.T) {
	inBubble(t, func(f *fixture) {
		render := check.Value(semaphore.New(f.registry, "render", 3))(f.T)
		lease := check.Value(render.Acquire(f.Context(), 2))(f.T)
		f.options.Permits = map[string]int{"render": 3}
		f.options.AllowUnlock = func(*http.Request, sqllock.Row) error { return nil }
		h := f.handler()
		l := f.json(h, "?key=render")
		if body := f.get(h, "/").Body.String(); !strings.Contains(body, "2/3") || strings.Contains(body, `href="unlock`) {
			t.Errorf("no permits in %s", body)
		}
		if what := l.Events[0]; !strings.HasPrefix(what.Key, "render permit ") {
			t.Errorf("%+v", what)
		}
		if body := f.get(h, "/?key=render").Body.String(); !strings.Contains(body, "2/3") || strings.Count(body, `href="unlock`) != 2 {
			t.Errorf("no permits in %s", body)
		}
		for _, row := range l.Locks {
			if row.Of != "render" || !strings.HasPrefix(row.Seat, "permit ") || !row.Here {
				t.Errorf("%+v", row)
			}
		}
		if len(l.Locks) != 2 || len(f.json(h, "").Locks) != 2 || l.Seen.Acquired == 0 {
			t.Errorf("%+v", l)
		}
		must(f.T, lease.Unlock(f.Context()))
	})
}

// TestACallerInTurnWaits has another process hold what the only caller of this one waits for: that has the turn meanwhile.
func TestACallerInTurnWaits(t *testing.T) {
	t.Parallel()
	type claim func(context.Context, *sqllock.Registry) (*sqllock.Lease, error)
	permit := func(ctx context.Context, r *sqllock.Registry) (*sqllock.Lease, error) {
		return check.Value(semaphore.New(r, "k", 1))(t).Acquire(ctx, 1)
	}
	writer := func(ctx context.Context, r *sqllock.Registry) (*sqllock.Lease, error) {
		return check.Value(rwlock.New(r, "k"))(t).Lock(ctx)
	}
	for name, claim := range map[string]claim{"a semaphore": permit, "a writer behind a writer": writer} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				held := check.Value(claim(f.Context(), f.process("web-2", sqllock.DefaultRegion)))(f.T)
				waited := check.Begin(func() error {
					lease, err := claim(f.Context(), f.registry)
					if err != nil {
						return err
					}
					return lease.Unlock(f.Context())
				})
				time.Sleep(time.Minute)
				h := f.handler()
				l := f.json(h, "?key=k")
				if l.Here.Held != 0 || l.Here.Waiting != 1 || len(l.Here.Keys) != 1 || l.Here.Keys[0].Key != "k" {
					t.Errorf("%+v", l.Here)
				}
				for _, row := range l.Locks {
					if turn := strings.HasSuffix(row.Seat, "turn"); row.Here || turn && row.Waiting != 1 {
						t.Errorf("%+v", row)
					}
				}
				check.Contains(t, f.get(h, "/").Body.String(), "<b>0</b> held here", "<b>1</b> waiting here", "1 waiting</span>")
				must(f.T, held.Unlock(f.Context()))
				must(f.T, <-waited)
				time.Sleep(time.Minute)
				l = f.json(h, "?key=k")
				if l.Seen.Acquired != 1 || l.Seen.LongestHold > 0.5 || l.Seen.LongestWait < 60 || l.Seen.LongestWait > 61 || l.Here.Waiting != 0 {
					t.Errorf("%+v, %+v", l.Seen, l.Here)
				}
				if !slices.Contains(l.Seen.Events, struct{ What string }{"wait ended"}) {
					t.Errorf("%+v", l.Seen.Events)
				}
				if first := l.Hour[0]; first.Held > 0 || first.Waiting < 0.95 {
					t.Errorf("%+v", l.Hour)
				}
			})
		})
	}
}

// TestJobsAndTheLastHour has runs of a job, and a lock that is held for 90 s and waited for in the last 30 of them.
func TestJobsAndTheLastHour(t *testing.T) {
	inBubble(t, func(f *fixture) {
		o, h := f.recorder.Observer(), f.handler()
		for _, run := range []observe.JobRun{
			{Outcome: observe.JobRan, Began: time.Now(), Took: 3 * time.Second},
			{Outcome: observe.JobFailed, Began: time.Now(), Took: time.Second, Err: errors.New("no paper")},
			{Outcome: observe.JobSkipped, Err: sqllock.ErrNotAcquired},
		} {
			run.Job = "report"
			o.JobRun(f.Context(), run)
		}
		if l := f.json(h, ""); len(l.Jobs) != 1 || l.Jobs[0] != (job{"report", 1, 1, 1, 0, 1, "no paper"}) || l.Events[0].What != "job failed" {
			t.Errorf("%+v", l)
		}
		if body := f.get(h, "/").Body.String(); strings.Contains(body, "success not known") {
			t.Error("the success of a job of package job is not known")
		}
		o.JobRun(f.Context(), observe.JobRun{Job: "by gocron", Outcome: observe.JobEnded, Began: time.Now(), Took: 2 * time.Second})
		if l := f.json(h, ""); len(l.Jobs) != 2 || l.Jobs[0] != (job{"by gocron", 1, 0, 0, 0, 2, ""}) || l.Events[0].What != "job failed" {
			t.Errorf("a run that may have failed: %+v", l)
		}
		check.Contains(t, f.get(h, "/").Body.String(), "1 run, 0 failed, 0 skipped<", "success not known, last run took 2.0 s")
		o.Waiting(f.Context(), observe.Wait{Key: "report", Process: "orders 1.4.2 on web-7, pid 4711", Waited: 30 * time.Second})
		o.Waiting(f.Context(), observe.Wait{Key: "report", Holder: "web-8-k0123456789", Waited: 40 * time.Second})
		body := f.get(h, "/").Body.String()
		check.Contains(t, body, "for 40 s, kept by web-8-k0123456789", "1 run, 1 failed, 1 skipped", "no paper", "for 30 s, held by orders 1.4.2 on web-7, pid 4711", "No lock was held or waited for")

		lease := check.Value(f.registry.Lock(f.Context(), "orders/42"))(f.T)
		time.Sleep(time.Minute)
		waited := make(chan error)
		go func() {
			next, err := f.registry.Lock(f.Context(), "orders/42")
			if err == nil {
				err = next.Unlock(f.Context())
			}
			waited <- err
		}()
		time.Sleep(30 * time.Second)
		must(f.T, lease.Unlock(f.Context()))
		must(f.T, <-waited)
		time.Sleep(30 * time.Second)
		if hour := fmt.Sprintf("%.1f", f.json(h, "").Hour); hour != "[{1.0 0.0} {0.5 0.5}]" { // the waiter polls
			t.Error(hour)
		}
		check.Contains(t, f.get(h, "/").Body.String(), `<rect x="58" width=".8" height="0.5">`)
		time.Sleep(time.Hour)
		if hour := f.json(h, "").Hour; len(hour) != 0 {
			t.Errorf("%+v", hour)
		}
	})
}
