package page_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

type flakyMoment = flaky.Moment

// TestViewersShareStatements has twenty viewers that look five times a second.
func TestViewersShareStatements(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.row("k", sqllock.DefaultRegion, "h", time.Second, time.Hour)
		h := f.handler()
		f.network.Follow(func(context.Context, flakyMoment) error { return nil })
		const seconds = 20
		var viewers sync.WaitGroup
		for viewer := range 20 {
			viewers.Go(func() {
				for range 5 * seconds {
					if l := f.json(h, fmt.Sprintf("?q=%s", []string{"k", "none", ""}[viewer%3])); l.Held != 1 {
						t.Errorf("%+v", l)
					}
					time.Sleep(time.Second / 5)
				}
			})
		}
		viewers.Wait()
		// A read is one of rows, one of their names, and one of waiters.
		if sent := f.network.Count(); sent < 3*seconds || sent > 3*(seconds+1) {
			t.Errorf("%d statements in %d s", sent, seconds)
		}
		f.network.Follow(nil)
		time.Sleep(time.Hour)
		if sent := f.network.Count(); sent > 0 {
			t.Errorf("%d statements without a viewer", sent)
		}
	})
}

// TestASlowDatabaseIsAskedLess has statements that take nearly two seconds, the limit of those for
// names, and then twenty.
func TestASlowDatabaseIsAskedLess(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.row("k", sqllock.DefaultRegion, "h", time.Second, time.Hour)
		h := f.handler()
		takes := func(d time.Duration) {
			f.network.Follow(func(ctx context.Context, m flakyMoment) error {
				if m.Done {
					return nil
				}
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}
		takes(1900 * time.Millisecond)
		for began := time.Now(); time.Since(began) < 4*time.Minute; time.Sleep(time.Second) {
			f.json(h, "")
		}
		if sent := f.network.Count(); sent < 9 || sent > 12 {
			t.Errorf("%d statements of nearly two seconds in four minutes", sent)
		}
		takes(20 * time.Second)
		time.Sleep(time.Minute)
		began := time.Now()
		if l := f.json(h, ""); l.Held != 1 || time.Since(began) > 3*time.Second {
			t.Errorf("after %v: %+v", time.Since(began), l)
		}
		time.Sleep(10 * time.Second)
		if l := f.json(h, ""); l.Held != 1 || !strings.Contains(l.Error, "no answer for 10s") {
			t.Errorf("%+v", l)
		}
		f.network.Follow(nil)
		time.Sleep(2 * time.Minute)
		if l := f.json(h, ""); l.Error != "" {
			t.Errorf("%+v", l)
		}
	})
}

// TestALargeTable has a hundred thousand rows, most of them expired. It takes seconds: the rows are
// real ones, and the race detector slows SQLite down.
func TestALargeTable(t *testing.T) {
	inBubble(t, func(f *fixture) {
		const rows = 5_000
		now := time.Now().UTC()
		must(t, check.ErrorOf(f.db.ExecContext(f.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
			SELECT printf('row-%06d', i), 'BULK', 'bulk', ?, ? FROM n`,
			rows, now.Add(-time.Hour).Format(instant), now.Add(-time.Minute).Format(instant))))
		must(t, check.ErrorOf(f.registry.Lock(f.Context(), "orders/42")))
		far := f.registry.Repository() // its row has expired, and lasts from later than all others
		must(t, check.ErrorOf(far.Acquire(f.Context(), "far", far.NewHolder(), time.Second)))
		time.Sleep(5 * time.Second)
		h := f.handler()
		f.network.Follow(nil)
		l := f.json(h, "")
		if !l.More || l.Held != 1 || l.Expired != 999 || l.Pages != 10 || len(l.Locks) != 100 {
			t.Errorf("held %d, expired %d, %d pages, %d locks", l.Held, l.Expired, l.Pages, len(l.Locks))
		}
		if l := f.json(h, "?state=held"); l.Matches != 1 || *l.Locks[0].Key != "orders/42" {
			t.Errorf("%+v", l)
		}
		if l := f.json(h, "?page=10"); l.Page != 10 || len(l.Locks) != 100 {
			t.Errorf("page %d, %d locks", l.Page, len(l.Locks))
		}
		if l := f.json(h, "?q=far"); l.Matches != 1 || *l.Locks[0].Key != "far" || l.Locks[0].State != "expired" || l.Locks[0].Left > -4 {
			t.Errorf("a key beyond the limit: %+v", l.Locks)
		}
		for parameters, matches := range map[string]int{"?q=far&state=held": 0, "?q=far&state=expired": 1, "?key=far&state=held": 1} {
			if l := f.json(h, parameters); l.Matches != matches {
				t.Errorf("%s: a key beyond the limit: %+v", parameters, l.Locks)
			}
		}
		if l := f.json(h, "?q=missing"); l.Matches != 0 {
			t.Errorf("%+v", l)
		}
		if body := f.get(h, "/").Body.String(); !strings.Contains(body, "more rows than the 1000") || len(body) > 200_000 {
			t.Errorf("%d bytes", len(body))
		}
	})
}

// TestManySearches has more viewers that search beyond the limit than a second has statements.
func TestManySearches(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.row("a", sqllock.DefaultRegion, "h", 2*time.Second, time.Hour)
		f.row("b", sqllock.DefaultRegion, "h", time.Second, time.Hour)
		f.options.Limit = 1
		h := f.handler()
		f.network.Follow(nil)
		began := time.Now()
		var busy, searches int
		var mu sync.Mutex
		var viewers sync.WaitGroup
		for viewer := range 20 {
			viewers.Go(func() {
				for time.Since(began) < time.Minute {
					body := f.get(h, fmt.Sprintf("/live?q=missing-%d", viewer)).Body.String()
					mu.Lock()
					searches++
					if strings.Contains(body, "too many viewers") {
						busy++
					}
					mu.Unlock()
					time.Sleep(time.Second)
				}
			})
		}
		viewers.Wait()
		if sent := f.network.Count(); float64(sent) > 2*(time.Since(began).Seconds()+1) || busy == 0 || busy == searches {
			t.Errorf("%d statements in %v; %d of %d searches were refused", sent, time.Since(began), busy, searches)
		}
	})
}
