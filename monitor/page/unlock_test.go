package page_test

import (
	"context"
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/monitor/page"
)

// post returns the answer to a form. from, if set, changes the request: who sends it.
func (f *fixture) post(h http.Handler, target string, form url.Values, from func(*http.Request)) *httptest.ResponseRecorder {
	f.Helper()
	r := httptest.NewRequestWithContext(f.Context(), http.MethodPost, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if from != nil {
		from(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// TestRowsThatNoAddressCanName are shown without a link, which would lead to an error.
func TestRowsThatNoAddressCanName(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.options.AllowUnlock = func(*http.Request, sqllock.Row) error { return nil }
		for _, key := range []string{"not utf-8: \xff", strings.Repeat("long", 5000)} {
			f.row(key, "billing", "web-2-00000000001", time.Minute, time.Minute)
		}
		if body := f.get(f.handler(), "/").Body.String(); strings.Count(body, "web-2") < 2 || strings.Contains(body, `href="unlock?`) {
			t.Errorf("the rows are missing or have links: %.2000s", body)
		}
	})
}

// TestUnlock removes a row of another region and mapping, which was shown.
func TestUnlock(t *testing.T) {
	inBubble(t, func(f *fixture) {
		var audit []page.Unlock
		f.options.AllowUnlock = func(*http.Request, sqllock.Row) error { return nil }
		f.options.OnUnlock = func(r *http.Request, u page.Unlock) {
			if r.RemoteAddr == "" {
				t.Error("the hook does not get the request")
			}
			audit = append(audit, u)
		}
		f.row("plain/key", "billing", "web-2-00000000001", time.Minute, time.Minute)
		h := f.handler()
		row := sqllock.Row{Region: "billing", LockKey: "plain/key", Holder: "web-2-00000000001"}
		check.Contains(t, f.get(h, "/").Body.String(), `href="unlock?holder=web-2-00000000001&amp;lock_key=plain%2Fkey&amp;region=billing"`)
		ask := f.get(h, "/unlock?"+formOf(row).Encode())
		check.Contains(t, ask.Body.String(), "Unlock <bdi>plain/key</bdi>?", "web-2-00000000001", "1 min 00 s", "This breaks the lock", `method="post"`)
		other := row
		other.Holder = "web-2-00000000002"
		if w := f.post(h, "/unlock", formOf(other), nil); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "released or acquired again") {
			t.Errorf("another holder: status %d", w.Code)
		}
		if w := f.post(h, "/unlock", formOf(row), nil); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Unlocked") {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		if l := f.json(h, ""); len(l.Locks) != 0 {
			t.Errorf("%+v", l.Locks)
		}
		if w := f.get(h, "/unlock?"+formOf(row).Encode()); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "<form") {
			t.Errorf("of a row that is gone: status %d", w.Code)
		}
		if len(audit) != 2 || audit[0].Removed || !audit[1].Removed || audit[1].Row.Holder != row.Holder || audit[1].Row.Age < time.Minute {
			t.Errorf("%+v", audit)
		}
	})
}

// TestUnlockTellsTheHostWhatWasShown removes a row of a process that has said who it is, and one that was not read.
func TestUnlockTellsTheHostWhatWasShown(t *testing.T) {
	inBubble(t, func(f *fixture) {
		var allowed, removed sqllock.Row
		f.options.AllowUnlock = func(_ *http.Request, row sqllock.Row) error { allowed = row; return nil }
		f.options.OnUnlock = func(_ *http.Request, u page.Unlock) { removed = u.Row }
		f.options.Names, f.options.Limit = []string{"orders/42"}, 1
		lease := check.Value(f.process("web-2", sqllock.DefaultRegion).Lock(f.Context(), "orders/42"))(f.T)
		time.Sleep(1500 * time.Millisecond)
		f.row("other", sqllock.DefaultRegion, "web-3-00000000002", 1200*time.Millisecond, time.Minute)
		f.row("beyond", sqllock.DefaultRegion, "web-3-00000000001", time.Second, time.Second)
		h := f.handler()
		shown := f.json(h, "").Locks[0]
		for _, row := range []sqllock.Row{
			{Region: shown.Region, LockKey: shown.LockKey, Holder: lease.Holder(), Age: 1500 * time.Millisecond, Left: ttl - 1500*time.Millisecond, Key: "orders/42", Process: *shown.Process},
			{Region: sqllock.DefaultRegion, LockKey: "beyond", Holder: "web-3-00000000001"},
		} {
			f.post(h, "/unlock", formOf(row), nil)
			if allowed != row || removed != row {
				t.Errorf("%+v was shown, %+v allowed, %+v removed", row, allowed, removed)
			}
		}
	})
}

// TestUnlockOfOddKeys follows the link and the form of rows whose text browsers would change in the
// field of a form, or which is HTML.
func TestUnlockOfOddKeys(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.options.AllowUnlock = func(*http.Request, sqllock.Row) error { return nil }
		h := f.handler()
		for _, key := range []string{"a\nb", "a\rb", "a\r\nb", " k\t", `<b>"&amp;`, "ä%0A+"} {
			f.row(key, "r\n2", "h\n1", time.Minute, time.Minute)
			time.Sleep(2 * time.Second) // until the table is read again
			ask := f.get(h, "/"+firstOf(f.T, f.get(h, "/").Body.String(), `<td class="act"><a href="`))
			w := f.post(h, "/"+firstOf(f.T, ask.Body.String(), `<form method="post" action="`), nil, nil)
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Unlocked") {
				f.Errorf("%q: status %d", key, w.Code)
			}
			if l := f.json(h, ""); len(l.Locks) != 0 {
				f.Fatalf("%q: %+v", key, l.Locks)
			}
		}
	})
}

// firstOf returns the value of an attribute: what follows text in a page, up to the next quote.
func firstOf(t *testing.T, page, text string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, text)
	if !ok {
		t.Fatalf("no %s", text)
	}
	value, _, _ := strings.Cut(after, `"`)
	return html.UnescapeString(value)
}

// TestUnlockOfARowWithoutHolder says why it cannot be removed: no statement of ours fits such a row, which
// neither sqllock nor Spring makes.
func TestUnlockOfARowWithoutHolder(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.options.AllowUnlock = func(*http.Request, sqllock.Row) error { return nil }
		f.row("k", sqllock.DefaultRegion, "h", time.Minute, time.Minute)
		must(f.T, check.ErrorOf(f.db.ExecContext(f.Context(), "UPDATE INT_LOCK SET CLIENT_ID = NULL")))
		w := f.post(f.handler(), "/unlock", formOf(sqllock.Row{Region: sqllock.DefaultRegion, LockKey: "k"}), nil)
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "has no CLIENT_ID") {
			f.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}

// TestUnlockRefused sends forms that must not remove the row.
func TestUnlockRefused(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.row("k", sqllock.DefaultRegion, "h", time.Minute, time.Minute)
		row := sqllock.Row{Region: sqllock.DefaultRegion, LockKey: "k", Holder: "h"}
		readOnly := f.handler()
		calls := 0
		f.options.AllowUnlock = func(*http.Request, sqllock.Row) error {
			calls++
			return errors.New("you are no operator")
		}
		f.options.OnUnlock = func(*http.Request, page.Unlock) { t.Error("a removal") }
		h := f.handler()
		for name, one := range map[string]struct {
			handler http.Handler
			form    url.Values
			from    func(*http.Request)
			status  int
			calls   int
		}{
			"read-only":      {readOnly, formOf(row), nil, http.StatusForbidden, 0},
			"cross-site":     {h, formOf(row), header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden, 0},
			"same-site":      {h, formOf(row), header("Sec-Fetch-Site", "same-site"), http.StatusForbidden, 0},
			"foreign origin": {h, formOf(row), header("Origin", "https://evil.example"), http.StatusForbidden, 0},
			"origin null":    {h, formOf(row), header("Origin", "null"), http.StatusForbidden, 0},
			"no row":         {h, url.Values{"holder": {"h"}}, nil, http.StatusBadRequest, 0},
			"no text":        {h, url.Values{"lock_key": {"\xff"}}, nil, http.StatusBadRequest, 0},
			"a large form":   {h, url.Values{"lock_key": {strings.Repeat("k", 1<<20)}}, nil, http.StatusBadRequest, 0},
			"the host":       {h, formOf(row), nil, http.StatusForbidden, 1},
			"its own origin": {h, formOf(row), header("Sec-Fetch-Site", "same-origin"), http.StatusForbidden, 1},
		} {
			calls = 0
			if w := f.post(one.handler, "/unlock", one.form, one.from); w.Code != one.status || calls != one.calls {
				t.Errorf("%s: status %d, want %d; AllowUnlock was called %d times", name, w.Code, one.status, calls)
			}
		}
		if w := f.get(h, "/unlock?"+formOf(row).Encode()); calls > 1 || !strings.Contains(w.Body.String(), "<form") {
			t.Error("asking is no removal")
		}
		if w := f.post(h, "/", formOf(row), nil); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST to the page: status %d", w.Code)
		}
		if body := f.get(readOnly, "/").Body.String(); strings.Contains(body, "nlock") {
			t.Error("a read-only page offers to unlock")
		}
		if l := f.json(readOnly, ""); len(l.Locks) != 1 {
			t.Errorf("%+v", l.Locks)
		}
	})
}

// TestUnlockFails has a database that fails when the row is to be removed.
func TestUnlockFails(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.row("k", sqllock.DefaultRegion, "h", time.Minute, time.Minute)
		f.options.AllowUnlock = func(*http.Request, sqllock.Row) error { return nil }
		var audit []page.Unlock
		f.options.OnUnlock = func(_ *http.Request, u page.Unlock) { audit = append(audit, u) }
		h := f.handler()
		f.get(h, "/")
		down := errors.New("the network is down")
		f.network.Follow(func(context.Context, flakyMoment) error { return down })
		row := sqllock.Row{Region: sqllock.DefaultRegion, LockKey: "k", Holder: "h"}
		w := f.post(h, "/unlock", formOf(row), nil)
		if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), down.Error()) {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		if len(audit) != 1 || audit[0].Removed || !errors.Is(audit[0].Err, down) {
			t.Errorf("%+v", audit)
		}
	})
}
