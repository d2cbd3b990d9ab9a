package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/runs"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/monitor/page"
	"github.com/sqllock/sqllock/observe"
)

// TestRowsOfMinimumHolds tells rows that finished holders have left from those of crashed ones.
func TestRowsOfMinimumHolds(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.row("crashed", sqllock.DefaultRegion, "web-1-03f9c52e11a", time.Hour, -time.Minute)
		f.row("kept", sqllock.DefaultRegion, "web-1-k3f9c52e11b", time.Hour, time.Minute)
		f.row("finished", sqllock.DefaultRegion, "web-1-k3f9c52e11c", time.Hour, -time.Minute)
		h := f.handler()
		if l := f.json(h, "?state=finished"); l.Held != 0 || l.Kept != 1 || l.Expired != 1 || l.Finished != 1 || l.Matches != 1 || l.Locks[0].State != "finished" {
			t.Errorf("%+v", l)
		}
		text := f.get(h, "/").Body.String()
		check.Contains(t, text, "<b>0</b> held", "<b>1</b> kept", "<b>1</b> expired", "<b>1</b> finished", `<span class="badge">kept</span>`)
	})
}

// TestCountsOfAPartOfTheTable reads so few rows that not all of a state are among them: those that are taken come first.
func TestCountsOfAPartOfTheTable(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.row("kept", sqllock.DefaultRegion, "web-1-k3f9c52e11b", time.Hour, time.Minute)
		f.row("held", sqllock.DefaultRegion, "web-1-03f9c52e11a", time.Minute, time.Minute)
		f.row("held too", sqllock.DefaultRegion, "web-1-03f9c52e11b", time.Second, time.Minute)
		for i := range 3 {
			f.row(fmt.Sprint("finished", i), sqllock.DefaultRegion, "web-1-k3f9c52e11c", time.Hour, -time.Minute)
		}
		for limit, want := range map[int][]string{
			2: {"<b>1+</b> held", "<b>1+</b> kept", "<b>0+</b> expired"},
			5: {"<b>2</b> held", "<b>1</b> kept", "<b>0+</b> expired", "<b>2+</b> finished"},
			6: {"<b>2</b> held", "<b>1</b> kept", "<b>0</b> expired", "<b>3</b> finished"},
		} {
			f.options.Limit = limit
			check.Contains(t, f.get(f.handler(), "/").Body.String(), want...)
		}
	})
}

// TestRowOfABusyKey shows a row that was released, and given an end of a day before, as that of a free lock.
func TestRowOfABusyKey(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.options.AllowUnlock = func(*http.Request, sqllock.Row) error { return nil }
		row := sqllock.Row{Region: sqllock.DefaultRegion, LockKey: "busy", Holder: "web-1-k3f9c52e11a"}
		f.row(row.LockKey, row.Region, row.Holder, 3*time.Second, -24*time.Hour)
		h := f.handler()
		text := f.get(h, "/").Body.String()
		check.Contains(t, text, `<span>3.0 s</span>`, `<span class="badge">finished</span></td>`)
		text += f.get(h, "/?of=busy&in="+row.Region).Body.String() + f.get(h, "/unlock?"+formOf(row).Encode()).Body.String()
		check.Contains(t, text, "none: the lock is free", "the next process that tries acquires it anyway")
		for _, wrong := range []string{"24 h", "This breaks the lock", "unless it is renewed", "the lease has expired"} {
			if strings.Contains(text, wrong) {
				t.Errorf("%q is in %s", wrong, text)
			}
		}
	})
}

// TestWhatIsShown has locks of this process and of others, callers that wait, and a leader.
func TestWhatIsShown(t *testing.T) {
	inBubble(t, func(f *fixture) {
		other := f.process("web-2:4711", "billing")
		mine := check.Value(f.registry.Lock(f.Context(), "orders/42"))(f.T)
		must(f.T, check.ErrorOf(other.Lock(f.Context(), "invoices")))
		f.row("old", sqllock.DefaultRegion, "java-host", time.Hour, -time.Minute)
		ctx, cancel := context.WithCancel(f.Context())
		waited := make(chan error)
		for range 2 {
			go func() {
				_, err := f.registry.Lock(ctx, "orders/42")
				waited <- err
			}()
		}
		f.options.Names, f.options.Roles = []string{"invoices"}, []string{"scheduler", "orders/42"}
		time.Sleep(12 * time.Second)
		l := f.json(f.handler(), "")
		if l.Held != 2 || l.Expired != 1 || l.More || l.Here.Held != 1 || l.Here.Waiting != 2 {
			t.Errorf("%+v", l)
		}
		if got := l.keys(); !slices.Equal(got, []string{"orders/42", "invoices", "old"}) {
			t.Errorf("keys %q", got)
		}
		own := l.Locks[0]
		if !own.Here || own.Token != mine.Token() || own.Holder != mine.Holder() || own.Waiting != 2 || own.State != "held" || own.Age != 12 || own.Left < 20 {
			t.Errorf("%+v", own)
		}
		if l.Locks[1].Here || l.Locks[1].Region != "billing" || l.Locks[2].State != "expired" || l.Locks[2].Left != -72 {
			t.Errorf("%+v", l.Locks)
		}
		if named := l.Locks[1].Process; named == nil || named.PID != os.Getpid() || l.Locks[2].Process != nil {
			t.Errorf("%+v", l.Locks)
		}
		if l.Leaders[0].Client != "" || l.Leaders[1].Client != "web-1" {
			t.Errorf("%+v", l.Leaders)
		}
		body := f.get(f.handler(), "/").Body.String()
		check.Contains(t, body, ">orders/42<", ">invoices<", "held here", "2 waiting", "token ", "no leader", "Waiting in this process", "12 s", fmt.Sprint("pid ", os.Getpid()))
		cancel()
		for range 2 {
			if err := <-waited; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// TestACallerOfAJointLockWaitsOnce has one caller wait for two keys.
func TestACallerOfAJointLockWaitsOnce(t *testing.T) {
	inBubble(t, func(f *fixture) {
		must(f.T, check.ErrorOf(f.registry.Lock(f.Context(), "a")))
		ctx, cancel := context.WithCancel(f.Context())
		joint, waited := check.Value(f.registry.ObtainAll("a", "b"))(f.T), make(chan error)
		go func() {
			_, err := joint.Lock(ctx)
			waited <- err
		}()
		time.Sleep(1300 * time.Millisecond)
		if l := f.json(f.handler(), ""); l.Here.Waiting != 1 || l.Here.Held != 1 {
			t.Errorf("%+v", l.Here)
		}
		cancel()
		check.Is(f.T, <-waited, context.Canceled)
	})
}

// TestLongWaits has callers of another process wait for a lock that this one holds, and for one without a row.
func TestLongWaits(t *testing.T) {
	inBubble(t, func(f *fixture) {
		must(t, check.ErrorOf(f.registry.Lock(f.Context(), "orders/42")))
		other := f.process("web-2:4711", sqllock.DefaultRegion)
		ctx, cancel := context.WithCancel(f.Context())
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() { _, _ = other.Lock(ctx, "orders/42") })
		}
		h := f.handler()
		time.Sleep(4 * time.Second)
		if w := f.json(h, "").Waiters; len(w) != 0 {
			t.Errorf("after 4 s: %+v", w)
		}
		time.Sleep(41 * time.Second)
		w := f.json(h, "").Waiters
		if len(w) != 1 || w[0].Key != "orders/42" || w[0].ClientID != "web-2:4711" || w[0].Callers != 2 || w[0].Waited < 44 || w[0].Waited > 45 {
			t.Errorf("after 45 s: %+v", w)
		}
		check.Contains(t, f.get(h, "/").Body.String(), "2 wait for <span", "Long waits", fmt.Sprint("pid ", os.Getpid(), "</bdi> waits"), ", 2 callers")
		check.Contains(t, f.get(h, "/?key=orders%2F42").Body.String(), "Long waits", ", 2 callers")
		if strings.Contains(f.get(h, "/?key=invoices").Body.String(), "Long waits") {
			t.Error("another lock shows the waiters, too")
		}
		cancel()
		callers.Wait()
		time.Sleep(3 * time.Second)
		if w := f.json(h, "").Waiters; len(w) != 0 {
			t.Errorf("at the end: %+v", w)
		}
	})
}

// TestOverdueLeases has a lock whose holder does not reach the database for longer than half of its time-to-live.
func TestOverdueLeases(t *testing.T) {
	inBubble(t, func(f *fixture) {
		lease := check.Value(f.registry.Lock(f.Context(), "orders/42"))(f.T)
		time.Sleep(time.Minute + ttl/20) // between two renewals
		h := f.handler()
		shown := func(overdue bool) {
			t.Helper()
			l := f.json(h, "").Locks[0]
			if l.TTL == nil || *l.TTL != ttl.Seconds() || l.Overdue == nil || *l.Overdue != overdue || *l.Renewed != *l.TTL-l.Left {
				t.Errorf("%+v, want overdue %v", l, overdue)
			}
			if got := strings.Contains(f.get(h, "/").Body.String(), ">overdue<"); got != overdue {
				t.Errorf("the page says overdue: %v", got)
			}
			check.Contains(t, f.get(h, "/?key=orders%2F42").Body.String(), "<dt>Renewed</dt>")
		}
		shown(false)
		f.network.Follow(func(context.Context, flakyMoment) error { return errors.New("away") })
		time.Sleep(ttl * 6 / 10)
		f.network.Follow(nil)
		shown(true)
		must(t, lease.Unlock(f.Context()))
	})
}

// TestSearchAndSort goes through the parameters of the address, bad ones too.
func TestSearchAndSort(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.row("b", "EAST", "web-2", 3*time.Second, 5*time.Second)
		f.row("a", "WEST", "web-1", 2*time.Second, 9*time.Second)
		f.row("c", "EAST", "web-3", time.Second, -time.Second)
		h := f.handler()
		for parameters, want := range map[string]string{
			"": "b a c", "?sort=key": "a b c", "?sort=-key": "c b a", "?sort=left": "b a c", "?sort=-left": "a b c", "?sort=region": "b c a", "?sort=nonsense": "b a c",
			"?q=east": "b c", "?q=EAST+web-3": "c", "?state=held": "b a", "?state=expired": "c", "?state=x&page=-7": "b a c", "?page=9": "b a c",
			"?q=" + strings.Repeat("x", 5000): "",
		} {
			check.Equal(t, parameters, strings.Join(f.json(h, parameters).keys(), " "), want)
		}
		check.Contains(t, f.get(h, "/?q=none").Body.String(), "No lock matches")
	})
}

const (
	// hostile is text that must stay text.
	hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>'{{.}}`
	// control is text that a page must not show as it is, either.
	control = hostile + "\u202e\x1b[2J"
)

// TestTextOfTheTableStaysText has markup in every column and in what a viewer writes.
func TestTextOfTheTableStaysText(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.row(control, "<b>"+control, "<i>"+control, time.Second, time.Minute)
		f.options.AllowUnlock = func(*http.Request, sqllock.Row) error { return errors.New(hostile) }
		f.options.Title, f.options.Names, f.options.Roles = hostile, []string{hostile}, []string{hostile}
		f.options.Check = func(context.Context) ([]page.Finding, error) {
			return []page.Finding{{Severity: page.Severity(hostile), Subject: hostile, Text: hostile, Advice: hostile}}, errors.New(hostile)
		}
		row := sqllock.Row{Region: "<b>" + control, LockKey: control, Holder: "<i>" + control}
		h := f.handler()
		f.get(h, "/")
		synctest.Wait() // for the checks
		answers := []*httptest.ResponseRecorder{
			f.get(h, "/"), f.get(h, "/live"), f.get(h, "/?q=%22%3E%3Cscript%3E"), f.get(h, "/unlock?"+formOf(row).Encode()),
			f.post(h, "/unlock", formOf(row), nil),
		}
		for _, w := range answers {
			f.checkAnswer(w, false)
			if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
				t.Errorf("policy %q", policy)
			}
			if w.Header().Get("Cache-Control") != "no-store" {
				t.Error("an answer may be stored")
			}
		}
	})
}

// TestMounted requests the page under a prefix, with and without http.StripPrefix.
func TestMounted(t *testing.T) {
	inBubble(t, func(f *fixture) {
		h := f.handler()
		mux := http.NewServeMux()
		mux.Handle("/whole/locks/", h)
		mux.Handle("/admin/locks/", http.StripPrefix("/admin/locks", h))
		mux.Handle("/slashless", http.StripPrefix("/slashless", h))
		mux.Handle("/nothing/", http.StripPrefix("/nothing/", h))
		for target, want := range map[string]int{
			"/whole/locks/": 200, "/whole/locks/style.css": 200, "/whole/locks/script.js": 200, "/whole/locks/icon.svg": 200, "/whole/locks/live?q=x": 200,
			"/admin/locks/": 200, "/admin/locks/locks.json": 200, "/admin/locks/page.html": 404, "/admin/locks/unlock": 404, "/nothing/": 200, "/nothing/style.css": 200, "/slashless?q=x": 301,
		} {
			if got := f.get(mux, target); got.Code != want {
				t.Errorf("%s: status %d, want %d", target, got.Code, want)
			}
		}
		check.Equal(t, "redirected to", f.get(mux, "/slashless?q=x").Header().Get("Location"), "./slashless/?q=x")
		for _, link := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(f.get(h, "/").Body.String(), -1) {
			if strings.HasPrefix(link[1], "/") || strings.Contains(link[1], ":") {
				t.Errorf("the link %q is not relative", link[1])
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(f.Context(), http.MethodPut, "/", nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
			t.Errorf("PUT: status %d", w.Code)
		}
	})
}

// TestRecorder shows renewals that fail, a lease that is lost, and an election.
func TestRecorder(t *testing.T) {
	inBubble(t, func(f *fixture) {
		h := f.handler()
		lease := check.Value(f.registry.Lock(f.Context(), "orders/42"))(f.T)
		time.Sleep(ttl / 2)
		if r := f.json(h, "").Renewals; r == nil || r.Renewals == 0 || r.Leases != 1 || r.Error != "" {
			t.Errorf("%+v", r)
		}
		down := errors.New("the network is down")
		f.network.Follow(func(context.Context, flakyMoment) error { return down })
		<-lease.Context().Done()
		synctest.Wait() // the user is told first, and observers after that
		_, err := f.registry.Lock(lease.Context(), "orders/42")
		check.Is(t, err, sqllock.ErrLockLost)
		l := f.json(h, "")
		if !slices.ContainsFunc(l.Events, func(e struct{ Severity, What, Key, Text string }) bool {
			return e.What == "not acquired" && e.Severity == "broken" && strings.Contains(e.Text, "lock lost")
		}) {
			t.Errorf("to enter a lease that is lost: %+v", l.Events)
		}
		if r := l.Renewals; !strings.Contains(r.Error, down.Error()) || r.Failed == 0 || r.Lost != 1 || !strings.Contains(l.Error, down.Error()) {
			t.Errorf("%+v, %q", r, l.Error)
		}
		if l.Held != 1 || l.Locks[0].State != "held" || l.Locks[0].Age != 15 {
			t.Errorf("after an outage, what was read last: %+v", l.Locks)
		}
		body := f.get(h, "/").Body.String()
		check.Contains(t, body, "The table cannot be read", "This is what it contained", ">orders/42<", "renewals fail", "it was not renewed in time")
		f.network.Follow(nil)
		time.Sleep(2 * ttl)

		o := f.recorder.Observer()
		elector := check.Value(f.registry.Lock(f.Context(), "scheduler"))(f.T)
		report := func(e observe.Election) {
			e.Role = "scheduler"
			o.Election(f.Context(), e)
		}
		report(observe.Election{State: observe.ElectorCandidate})
		report(observe.Election{State: observe.ElectorLeader, Holder: elector.Holder()})
		if l := f.json(h, ""); !l.Leaders[0].Here.Leads {
			t.Errorf("%+v", l)
		}
		report(observe.Election{State: observe.ElectorCandidate, Holder: elector.Holder(), Led: time.Minute, Cause: sqllock.ErrLockLost})
		if l := f.json(h, ""); l.Error != "" || len(l.Leaders) != 1 || l.Leaders[0].Role != "scheduler" || l.Leaders[0].Client != "web-1" || l.Leaders[0].Here.Leads || l.Leaders[0].Here.Terms != 1 {
			t.Errorf("%+v", l)
		}
		report(observe.Election{State: observe.ElectorRetired})
		if l := f.json(h, ""); len(l.Leaders) != 0 {
			t.Errorf("%+v", l.Leaders)
		}
		if keys := f.json(h, "?state=expired").keys(); !slices.Equal(keys, []string{"orders/42"}) {
			t.Error("the page has forgotten the key of a lease that was lost")
		}
		var what []string
		for _, e := range f.json(h, "").Events {
			what = append(what, e.What)
		}
		for _, want := range []string{"acquired", "renewals fail", "lost", "leads", "leads no more", "campaigns no more"} {
			if !slices.Contains(what, want) {
				t.Errorf("no event %q among %q", want, what)
			}
		}
	})
}

// TestRecorderKeepsWhatMatters has more events than a recorder keeps.
func TestRecorderKeepsWhatMatters(t *testing.T) {
	inBubble(t, func(f *fixture) {
		o := f.recorder.Observer()
		o.LeaseEnd(f.Context(), observe.LeaseEnd{Key: "lost", Reason: observe.EndTaken, Err: sqllock.ErrLockLost})
		for range 1000 {
			o.LeaseEnd(f.Context(), observe.LeaseEnd{Key: "k", Reason: observe.EndUnlocked})
		}
		events := f.json(f.handler(), "").Events
		if len(events) != 51 || !slices.ContainsFunc(events, func(e struct{ Severity, What, Key, Text string }) bool { return e.Key == "lost" }) {
			t.Errorf("%d events", len(events))
		}
	})
}

// TestRenewalsOfSeveralTimesToLive has those of one fail again and again while those of another succeed.
func TestRenewalsOfSeveralTimesToLive(t *testing.T) {
	inBubble(t, func(f *fixture) {
		h := f.handler()
		renewal := f.recorder.Observer().Renewal
		down := errors.New("the network is down")
		events := func(what string) (n int) {
			for _, e := range f.json(h, "").Events {
				if e.What == what {
					n++
				}
			}
			return n
		}
		for range 30 {
			renewal(f.Context(), observe.Renewal{TTL: time.Minute, Leases: 1, Err: down})
			renewal(f.Context(), observe.Renewal{TTL: time.Hour, Leases: 1})
		}
		if r := f.json(h, "").Renewals; r.Error != down.Error() || r.Failed != 30 || r.Renewals != 60 {
			t.Errorf("%+v", r)
		}
		if failed, worked := events("renewals fail"), events("renewals work again"); failed != 1 || worked != 0 {
			t.Errorf("%d events of failures, %d of their ends", failed, worked)
		}
		renewal(f.Context(), observe.Renewal{TTL: time.Minute, Leases: 1})
		if r, worked := f.json(h, "").Renewals, events("renewals work again"); r.Error != "" || worked != 1 {
			t.Errorf("%+v, %d events", r, worked)
		}
		renewal(f.Context(), observe.Renewal{TTL: time.Minute, Leases: 1, Err: down})
		time.Sleep(time.Minute + time.Second)
		if r := f.json(h, "").Renewals; r.Error != "" {
			t.Errorf("renewals still fail although there is nothing to renew: %+v", r)
		}
	})
}

// TestChecks runs the host's checks in the background, at most once in ten minutes.
func TestChecks(t *testing.T) {
	inBubble(t, func(f *fixture) {
		var runs atomic.Int64
		f.options.Check = func(context.Context) ([]page.Finding, error) {
			time.Sleep(20 * time.Second)
			runs.Add(1)
			return []page.Finding{{Severity: page.Note, Subject: "server", Text: "is slow", Advice: "wait"}}, nil
		}
		h := f.handler()
		check.Contains(t, f.get(h, "/").Body.String(), "The checks are running")
		for range 5 {
			time.Sleep(time.Minute)
			if l := f.json(h, ""); len(l.Findings) != 1 || l.Findings[0].Text != "is slow" || runs.Load() != 1 {
				t.Errorf("%d runs, %+v", runs.Load(), l.Findings)
			}
		}
		time.Sleep(10 * time.Minute)
		f.get(h, "/")
		time.Sleep(time.Minute)
		if runs.Load() != 2 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

// TestRunsOfAllProcesses shows what other processes have recorded of jobs.
func TestRunsOfAllProcesses(t *testing.T) {
	inBubble(t, func(f *fixture) {
		h, code := f.handler(), 3
		if l := f.json(h, ""); l.Runs == nil || len(l.Runs) != 0 {
			t.Errorf("%+v", l.Runs)
		}
		if strings.Contains(f.get(h, "/").Body.String(), "Runs of jobs") {
			t.Error("the page has a heading over no runs")
		}
		other, elsewhere := f.process("cron", sqllock.DefaultRegion), f.process("cron", "b")
		runs.Record(f.Context(), other, "nightly <b>", runs.Last{Took: 1500 * time.Millisecond})
		time.Sleep(time.Minute)
		runs.Record(f.Context(), other, "nightly <b>", runs.Last{Took: time.Second, Failed: true, Code: &code})
		runs.Record(f.Context(), elsewhere, "backup", runs.Last{})
		runs.Skip(f.Context(), other, "nightly <b>", 5)
		time.Sleep(time.Minute)
		f.json(h, "")
		time.Sleep(5 * time.Second) // it was not read anew
		l := f.json(h, "")
		if len(l.Runs) != 2 || l.Runs[0].Key != "backup" || l.Runs[0].Region != "b" || l.Runs[0].Failed || l.Runs[0].Runs != 1 {
			t.Fatalf("%+v", l.Runs)
		}
		if r := l.Runs[1]; r.Key != "nightly <b>" || !r.Failed || r.Code != 3 || r.Ended != 65 || r.Succeeded != 125 || r.Took != 1 || r.Runs != 2 || r.Failures != 1 || r.Skips != 5 {
			t.Errorf("%+v", r)
		}
		check.Contains(t, f.get(h, "/").Body.String(), "nightly &lt;b&gt;", "2 runs, 1 failed, 5 skipped", "failed with exit code 3", "backup")
		own := f.get(h, "/?key="+url.QueryEscape("nightly <b>")).Body.String()
		check.Contains(t, own, "2 runs, 1 failed, 5 skipped")
		if strings.Contains(own, "backup") {
			t.Error("the page of one job shows another")
		}
		check.Must(f, check.ErrorOf(f.db.ExecContext(f.Context(), "ALTER TABLE INT_LOCK_NAME RENAME TO AWAY")))
		time.Sleep(time.Minute)
		if l := f.json(h, ""); len(l.Runs) != 2 || l.Runs[1].Ended != 125 {
			t.Errorf("what was read last, after a read that failed: %+v", l.Runs)
		}
	})
}
