package page_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sqllock/sqllock"
)

var (
	// quoted is the value of an attribute: text of others has no quotes on the page.
	quoted = regexp.MustCompile(`"[^"]*"`)
	// markup are the tags and attributes of the templates, without values.
	markup = regexp.MustCompile(`<!DOCTYPE html>|</?(a|b|bdi|body|button|dd|details|dialog|div|dl|dt|em|figcaption|figure|footer|form|g|h1|h2|head|header|html|input|kbd|label|li|link|main|meta|nav|` +
		`ol|option|p|progress|rect|section|select|small|span|summary|svg|table|tbody|td|th|thead|time|title|tr|ul|br)( [a-np-z][a-zA-Z-]*(="")?)*>|<script src="" defer></script>`)
	// elsewhere are links that lead away from the page, or that a browser runs.
	elsewhere = regexp.MustCompile(`(?i)(href|src|action)="([a-z]*:|[/\\])`)
)

// checkAnswer checks that an answer is one of those that the page gives, and that text of others stays
// text in it. from has the values that it may contain as they are, because the viewer has sent them.
func (f *fixture) checkAnswer(w *httptest.ResponseRecorder, ownText bool) {
	f.Helper()
	if !slices.Contains([]int{200, 206, 301, 304, 400, 403, 404, 405, 409, 412, 416}, w.Code) {
		f.Errorf("status %d: %s", w.Code, w.Body)
	}
	body, kind := w.Body.String(), w.Header().Get("Content-Type")
	if w.Header().Get("Content-Security-Policy") == "" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		f.Errorf("headers %v", w.Header())
	}
	if to := w.Header().Get("Location"); to != "" && !strings.HasPrefix(to, "./") {
		f.Errorf("redirected to %q", to)
	}
	switch {
	case strings.HasPrefix(kind, "text/html"):
		rest := markup.ReplaceAllString(quoted.ReplaceAllString(body, `""`), "")
		if strange := regexp.MustCompile(`<[^>]*>?|>`).FindAllString(rest, -1); len(strange) > 0 || elsewhere.MatchString(body) {
			f.Errorf("text has become markup %q, or a link away: %q", strange, elsewhere.FindString(body))
		}
		strange := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }
		if !ownText && (strings.ContainsFunc(body, strange) || !utf8.ValidString(body)) {
			f.Errorf("a character that is not printable in %q", body)
		}
	case kind == "application/json":
		if !json.Valid([]byte(body)) || strings.ContainsAny(body, "<>") {
			f.Errorf("not JSON that is safe in a page: %s", body)
		}
	}
}

// FuzzRows puts rows into the table that another writer may have put there, with text, bytes, numbers or NULL
// in each column, and requests all pages about them.
func FuzzRows(f *testing.F) {
	const now, later = "2000-01-01 00:00:00", "2000-01-01 00:01:00"
	f.Add(control, "<b>"+control, "<i>"+control, now, later, uint16(0))
	f.Add("k", "DEFAULT", "web-1-00000000001", "never", "infinity", uint16(0))
	f.Add("k", "DEFAULT", "h", "-4713-11-24 12:00:00", "9999-12-31 23:59:59.999", uint16(0))
	f.Add("not utf-8: \xff", "\x00", "'; DROP TABLE INT_LOCK; --", now, "1e300", uint16(0b11_01_01_01_01))
	f.Add("1", "2", "3", "4", "5", uint16(0b11_11_10_11_11))
	f.Fuzz(func(t *testing.T, lockKey, region, holder, created, expired string, kinds uint16) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			var values []any
			for i, text := range []string{lockKey, region, holder, created, expired} {
				values = append(values, map[uint16]any{0: text, 1: []byte(text), 3: len(text)}[kinds>>(2*i)&3])
			}
			_, err := f.db.ExecContext(t.Context(), "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES (?, ?, ?, ?, ?)", values...)
			if err != nil {
				t.Skip("the table does not take it")
			}
			f.row("other", sqllock.DefaultRegion, "h", time.Second, time.Minute)
			f.options.AllowUnlock = func(*http.Request, sqllock.Row) error { return nil }
			h := f.handler()
			rows, err := f.registry.Repository().List(t.Context())
			must(t, err)
			if l := f.json(h, ""); len(rows) != 2 || l.Error != "" || len(l.Locks) != 2 {
				t.Errorf("%d rows, on the page %+v", len(rows), l)
			}
			for _, target := range []string{"/", "/live", "/locks.json", "/?state=expired", "/?sort=key"} {
				f.checkAnswer(f.get(h, target), false)
			}
			for _, row := range rows {
				target := "/unlock?" + formOf(row).Encode()
				f.checkAnswer(f.get(h, target), false)
				f.checkAnswer(f.get(h, "/?"+url.Values{"of": {row.LockKey}, "in": {row.Region}}.Encode()), false)
				f.checkAnswer(f.post(h, target, nil, nil), false)
			}
		})
	})
}

// FuzzRequests sends requests to the page, as a server reads them.
func FuzzRequests(f *testing.F) {
	for _, target := range []string{
		"/", "/live?q=" + control, "/locks.json?page=-1&sort=-x", "/unlock?region=DEFAULT&lock_key=k&holder=h", "/unlock?lock_key=%ff%00", "/script.js", "*",
		"http://other.example", "//other.example/..", "/?q=%22%3E%3Cscript%3E&page=99999999999999999999", "/?%zz&state=held;q=1", "/\\other.example/",
	} {
		f.Add("GET", target, "", "")
		f.Add("POST", target, "Origin: http://other.example\r\n", "region=%ff&lock_key="+hostile)
		f.Add("CONNECT", target, "Range: bytes=5-2,-1\r\n", "\x00")
	}
	f.Fuzz(func(t *testing.T, method, target, header, body string) {
		raw := method + " " + target + " HTTP/1.1\r\nHost: locks.example\r\nContent-Type: application/x-www-form-urlencoded\r\n" + header + "\r\n"
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil {
			t.Skip("a server refuses it")
		}
		r.Body = http.NoBody
		if body != "" {
			r.Body = http.MaxBytesReader(nil, readCloser{strings.NewReader(body)}, 1<<20)
		}
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			f.row("k", sqllock.DefaultRegion, "h", time.Second, time.Minute)
			f.options.AllowUnlock = func(_ *http.Request, row sqllock.Row) error {
				if row.LockKey == "k" {
					return nil
				}
				return errors.New(row.LockKey)
			}
			for _, h := range []http.Handler{f.handler(), http.StripPrefix(r.URL.Path, f.handler())} {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r.WithContext(t.Context()))
				f.checkAnswer(w, true)
			}
		})
	})
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }
