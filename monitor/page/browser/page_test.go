package browser_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sqllock/sqllock/internal/test/check"
	lockpage "github.com/sqllock/sqllock/monitor/page"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// All tests start a browser, which takes seconds.

// TestTheTableMoves opens the page under a prefix and looks on while locks come and go.
func TestTheTableMoves(t *testing.T) {
	t.Parallel()
	s := newSite(t, lockpage.Options{Names: []string{"nightly-report"}})
	s.named("nightly-report", "batch-2:991-0b1c33e0a42", time.Hour, 2*time.Hour)
	b := open(t, 1200, 800)
	b.run(chromedp.Navigate(s.url))
	b.shows("nightly-report")
	b.shows("batch-2:991-0b1c33e0a42")
	b.until(`document.getElementById("state").textContent === "live"`)
	before := is[float64](b, `document.querySelector("progress").value`)
	b.until(`document.querySelector("progress").value < ` + strconv.FormatFloat(before, 'f', -1, 64))

	// The page reads on, and leaves alone what is the same: focus and selection stay.
	b.run(chromedp.Evaluate(`document.querySelector("th a").focus(); getSelection().selectAllChildren(document.querySelector("td.holder bdi"))`, nil))
	lease := check.Value(s.registry.Lock(t.Context(), "orders/42"))(s)
	b.shows("orders/42")
	b.shows("held here")
	b.shows("token " + strconv.FormatInt(lease.Token(), 10))
	if focus, selected := is[string](b, "document.activeElement.dataset.focus"), is[string](b, "getSelection().toString()"); focus != "sort key" || selected != "batch-2:991" {
		t.Errorf("focus on %q, selected %q", focus, selected)
	}
	check.Must(s, lease.Unlock(t.Context()))
	b.until(`!document.querySelector(".badge.mine")`)
	b.shows("released")
	s.delete("batch-2:991-0b1c33e0a42")
	b.shows("the table is empty")
	b.quiet()
}

// TestSearchWhileTyping searches and sorts with the keyboard alone.
func TestSearchWhileTyping(t *testing.T) {
	t.Parallel()
	s := newSite(t, lockpage.Options{})
	for i, holder := range []string{"web-c", "web-a", "web-b"} {
		s.row("plain-"+holder, "R", holder, time.Duration(i+1)*time.Minute, 2*time.Hour)
	}
	b := open(t, 1200, 800)
	b.run(chromedp.Navigate(s.url))
	b.shows("plain-web-c")
	b.run(chromedp.Focus("input[name=q]"), chromedp.KeyEvent("web-a"))
	b.hides("plain-web-c")
	b.shows("1 found")
	b.until(`location.search === "?q=web-a"`)
	b.run(chromedp.Evaluate(`document.querySelector("input[name=q]").select()`, nil), chromedp.KeyEvent(kb.Backspace))
	b.shows("plain-web-c")
	b.run(chromedp.Evaluate(`[...document.querySelectorAll("th a")].find((e) => e.textContent === "Holder").focus()`, nil), chromedp.KeyEvent(kb.Enter))
	b.until(`[...document.querySelectorAll("td.holder bdi")].map((e) => e.textContent).join() === "web-a,web-b,web-c"`)
	b.until(`document.activeElement.dataset.focus === "sort holder"`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.until(`[...document.querySelectorAll("td.holder bdi")].map((e) => e.textContent).join() === "web-c,web-b,web-a"`)
	b.until(`document.querySelector("th[aria-sort=descending]").textContent === "Holder"`)
	b.run(chromedp.NavigateBack())
	b.until(`[...document.querySelectorAll("td.holder bdi")].map((e) => e.textContent).join() === "web-a,web-b,web-c"`)
	b.until(`document.getElementById("state").textContent === "live"`) // the script runs
	b.run(chromedp.KeyEvent("?"))
	b.until(`document.getElementById("help").open`)
	b.run(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.getElementById("help").open`)
	b.run(chromedp.KeyEvent("/"))
	b.run(chromedp.KeyEvent("web-b"))
	b.hides("plain-web-c")
	b.run(chromedp.KeyEvent(kb.Escape))
	b.shows("plain-web-c")
	b.quiet()
}

// TestWithoutJavaScript searches, sorts and unlocks where scripts are switched off.
func TestWithoutJavaScript(t *testing.T) {
	t.Parallel()
	s := newSite(t, lockpage.Options{AllowUnlock: allowed})
	s.row("plain-1", "EAST", "web-1x", time.Minute, 2*time.Hour)
	s.row("plain-2", "WEST", "web-2x", time.Hour, 2*time.Hour)
	b := open(t, 1200, 800)
	b.run(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(s.url))
	b.shows("plain-1")
	if is[bool](b, `document.getElementById("state").textContent === "live"`) {
		t.Error("the script runs")
	}
	b.run(chromedp.SetValue("input[name=q]", "east"), chromedp.Submit("#search"))
	b.hides("plain-2")
	b.run(chromedp.Click("td.act a"))
	b.shows("Unlock plain-1?")
	b.run(chromedp.Click("button.danger"))
	b.shows("Unlocked plain-1")
	if s.count("web-1x") != 0 || s.count("web-2x") != 1 {
		t.Error("another row was removed")
	}
	b.run(chromedp.Click("a.button"))
	b.shows("No lock matches") // the search is kept
	b.quiet()
}

// TestUnlock removes a row with the keyboard, and one that has another holder by then.
func TestUnlock(t *testing.T) {
	t.Parallel()
	s := newSite(t, lockpage.Options{AllowUnlock: allowed})
	s.row("plain-1", "EAST", "web-1-00000000001", time.Minute, 2*time.Hour)
	b := open(t, 900, 640)
	b.run(chromedp.Navigate(s.url+"?q=east"), chromedp.Click(`//a[text()="Unlock"]`))
	b.shows("This breaks the lock")
	b.run(chromedp.Click(`//a[text()="Cancel"]`))
	b.shows("1 found")
	b.run(chromedp.Focus("td.act a"), chromedp.KeyEvent(kb.Enter))
	b.shows("This breaks the lock")
	b.screenshot("page-unlock")
	s.delete("web-1-00000000001")
	s.row("plain-1", "EAST", "web-1-00000000002", 0, 2*time.Hour)
	b.run(chromedp.Focus("button.danger"), chromedp.KeyEvent(kb.Enter))
	b.shows("Nothing was removed")
	if s.count("web-1-00000000002") != 1 {
		t.Error("the row of the next holder was removed")
	}
	b.run(chromedp.Click("a.button"))
	b.shows("-00000000002")
	b.run(chromedp.Click("td.act a"))
	b.shows("Unlock plain-1?")
	b.run(chromedp.Click("button.danger"))
	b.shows("Unlocked plain-1")
	if s.count("web-1-00000000002") != 0 {
		t.Error("the row is there")
	}
	b.quiet("409")
}

// TestTextStaysText has markup in key, region and client id, on the page, in what the script puts
// there, and in the question before a row is removed.
func TestTextStaysText(t *testing.T) {
	t.Parallel()
	const hostile = `<img src=x onerror="pwned=1"><script>pwned=2</script>'"><svg onload=pwned=3>`
	s := newSite(t, lockpage.Options{AllowUnlock: allowed, Names: []string{hostile}, Roles: []string{hostile}, Title: hostile})
	b := open(t, 1200, 800)
	b.run(chromedp.Navigate(s.url))
	s.row("k "+hostile, "r "+hostile, "c "+hostile, time.Minute, 2*time.Hour)
	s.named(hostile, "javascript:pwned=4", time.Minute, 2*time.Hour)
	unharmed := func() {
		t.Helper()
		if is[bool](b, `"pwned" in window || !!document.querySelector("img, svg:not(.chart), iframe, script:not([src='script.js'])")`) {
			t.Error("text of the table became part of the page")
		}
	}
	for _, kind := range []string{"k ", "r ", "c "} { // the script shows them
		b.shows(kind + hostile)
	}
	unharmed()
	b.run(chromedp.Reload())
	b.shows("k " + hostile)
	unharmed()
	b.run(chromedp.Click("td.act a"))
	b.shows("This breaks the lock")
	unharmed()
	b.run(chromedp.Click("button.danger"))
	b.shows("Unlocked")
	unharmed()
	b.run(chromedp.Navigate(s.url + "?q=" + `%3Cscript%3Epwned%3D5%3C%2Fscript%3E`))
	b.until(`document.querySelector("input[name=q]").value === "<script>pwned=5</script>"`)
	unharmed()
	b.quiet()
}

// TestNothingIsReadWhileHidden hides the page and pauses it. It takes seconds: the time of some
// requests that are not sent.
func TestNothingIsReadWhileHidden(t *testing.T) {
	t.Parallel()
	s := newSite(t, lockpage.Options{})
	b := open(t, 900, 640)
	b.run(chromedp.Navigate(s.url), chromedp.Evaluate(`window.pending = 0; window.theirs = fetch;
		window.fetch = (...request) => { pending++; return theirs(...request).finally(() => pending--); }; 0`, nil))
	more := func() {
		t.Helper()
		for before := s.live.Load(); s.live.Load() < before+2; {
			if b.ctx.Err() != nil {
				t.Fatal("the page is not read any more")
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	none := func(what string) {
		t.Helper()
		b.until("pending === 0") // what was sent before has arrived
		before := s.live.Load()
		time.Sleep(5 * time.Second)
		if sent := s.live.Load() - before; sent > 0 {
			t.Errorf("%d requests while the page is %s", sent, what)
		}
	}
	hide := func(hidden bool) {
		b.run(chromedp.Evaluate(`Object.defineProperty(document, "hidden", { value: `+strconv.FormatBool(hidden)+`, configurable: true });
			document.dispatchEvent(new Event("visibilitychange"))`, nil))
	}
	more()
	hide(true)
	none("hidden")
	hide(false)
	more()
	b.run(chromedp.Click("#pause"))
	b.shows("paused")
	none("paused")
	b.run(chromedp.Click("#pause"))
	more()
	b.quiet()
}

// contrast returns the lowest contrast of text with what is behind it.
const contrast = `(() => {
	const parse = (c) => c.match(/[\d.]+/g).map(Number);
	const lum = ([r, g, b]) => [r, g, b].map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; })
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const back = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
	let worst = 99;
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
		const [a, b] = [lum(parse(getComputedStyle(e).color)), lum(back(e))].sort((x, y) => y - x);
		worst = Math.min(worst, (a + 0.05) / (b + 0.05));
	}
	return worst;
})()`

// small are the links and controls of less than 24 pixels, which a finger misses.
const small = `[...document.querySelectorAll("a:not(.skip), button, input:not([type=hidden]), select, summary")].filter((e) => {
	const { width, height } = e.getBoundingClientRect();
	return height > 0 && (height < 24 || width < 24);
}).map((e) => e.outerHTML).join("\n")`

// rows is the height of the highest row of the table.
const rows = `Math.max(0, ...[...document.querySelectorAll("tbody tr[data-key^=r]")].map((e) => e.getBoundingClientRect().height))`

// TestLooks checks widths from a small phone to a desk, light and dark: nothing is cut off, all
// text has the contrast that WCAG asks for, a finger meets all links, and rows have two lines on a phone. With -pictures it writes those of the docs.
func TestLooks(t *testing.T) {
	t.Parallel()
	s := newSite(t, lockpage.Options{
		AllowUnlock: allowed, Names: []string{"nightly-report", "invoices/2026-11", "cart/7"}, Roles: []string{"scheduler", "mailer"}, Check: findings,
		Permits: map[string]int{"render": 3},
	})
	s.named("scheduler", "10.12.13.14:8080-00ff3a21c9e", 41*time.Hour, 21*time.Minute)
	s.named("nightly-report", "batch-2:991-0b1c33e0a42", 75*time.Minute, 9*time.Minute)
	s.named("cart/7", "web-3:20-0a3f9c52f02", 3*time.Hour, -40*time.Minute)
	s.row("0cc175b9-c0f1-36b6-831c-399e26977266", "DEFAULT", "8f6b4a52-4a0e-4d3b-9f3e-0f2a1f3d5c77", 33*time.Minute, 41*time.Minute)
	s.row("invoices/2026-11", "billing", "web-2:4711-0a3f9c52f02", 8*time.Minute, 2*time.Hour)
	render := check.Value(semaphore.New(s.registry, "render", 3))(s)
	check.Must(s, check.ErrorOf(render.Acquire(t.Context(), 2)))
	s.recorder.Observer().JobRun(t.Context(), observe.JobRun{Job: "report", Outcome: observe.JobRan, Began: time.Now(), Took: 3 * time.Second})
	s.recorder.Observer().Election(t.Context(), observe.Election{Role: "scheduler", State: observe.ElectorCandidate})
	lease := check.Value(s.registry.Lock(t.Context(), "orders/42"))(s)
	waited := make(chan error)
	for range 2 {
		go func() {
			other, err := s.registry.Lock(t.Context(), "orders/42")
			if err == nil {
				err = other.Unlock(t.Context())
			}
			waited <- err
		}()
	}
	b := open(t, 1180, 900)
	b.run(chromedp.Navigate(s.url))
	b.shows("2 waiting")
	b.shows("problem")
	b.shows("2/3")
	looksRight(b, "page")
	b.run(chromedp.Click(`//a[.="orders/42"]`))
	b.shows("Link to this lock")
	b.shows("2 waiting")
	looksRight(b, "page-lock")
	b.run(chromedp.Click(`//a[.="All locks"]`))
	b.shows("nightly-report")
	check.Must(s, lease.Unlock(t.Context()))
	for range 2 {
		check.Must(s, <-waited)
	}
	b.quiet()
}

// looksRight checks the page that a tab shows in all widths and colours, and makes two pictures.
func looksRight(b *tab, name string) {
	b.Helper()
	pictures := map[string]string{"light 1180": name, "dark 390": name + "-phone"}
	for _, scheme := range []string{"light", "dark"} {
		b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		for _, width := range []int64{320, 390, 760, 900, 1180} {
			b.run(chromedp.EmulateViewport(width, 900))
			if wide := is[int64](b, "document.documentElement.scrollWidth"); wide > width {
				b.Errorf("%s, %d: the page is %d wide", scheme, width, wide)
			}
			if lowest := is[float64](b, contrast); lowest < 4.5 {
				b.Errorf("%s, %d: a contrast of %.2f", scheme, width, lowest)
			}
			if missed := is[string](b, small); missed != "" {
				b.Errorf("%s, %d: too small: %s", scheme, width, missed)
			}
			if height := is[float64](b, rows); width <= 390 && height > 72 {
				b.Errorf("%s, %d: a row is %.0f pixels high", scheme, width, height)
			}
			if picture := pictures[fmt.Sprint(scheme, " ", width)]; picture != "" {
				b.screenshot(picture)
			}
		}
	}
}

// TestNoAnswer has the server go away and come back.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, lockpage.Options{})
	s.row("plain-1", "EAST", "web-1x", time.Minute, 2*time.Hour)
	b := open(t, 900, 640)
	b.run(chromedp.Navigate(s.url))
	b.until(`document.getElementById("state").textContent === "live"`)
	b.run(page.SetBypassCSP(false), chromedp.Evaluate(`window.theirs = fetch; window.fetch = () => Promise.reject(new TypeError("gone"))`, nil))
	b.shows("no answer from this page")
	b.shows("plain-1")
	b.run(chromedp.EmulateViewport(390, 640))
	if squeezed := is[string](b, `[...document.querySelector(".clock").children].filter((e) => e.scrollWidth > e.offsetWidth).map((e) => e.textContent).join()`); squeezed != "" {
		t.Errorf("on a phone too narrow for its text: %s", squeezed)
	}
	b.run(chromedp.Evaluate(`window.fetch = theirs; document.dispatchEvent(new Event("visibilitychange"))`, nil))
	b.until(`document.getElementById("state").textContent === "live"`)
	b.quiet()
}

// TestPasswordInTheAddress opens the page with a user and a password in its address, as a link to a page behind basic authentication has them.
func TestPasswordInTheAddress(t *testing.T) {
	t.Parallel()
	s := newSite(t, lockpage.Options{})
	s.row("plain-1", "EAST", "web-1x", time.Minute, 2*time.Hour)
	b := open(t, 900, 640)
	b.run(chromedp.Navigate(strings.Replace(s.url, "://", "://operator:secret@", 1)))
	b.until(`document.getElementById("state").textContent === "live"`)
	b.run(chromedp.Focus("input[name=q]"), chromedp.KeyEvent("web-2"))
	b.hides("plain-1")
	b.until(`document.getElementById("state").textContent === "live"`)
	b.quiet()
}

// TestOutage has the table go away and come back: what was read last stays, as it was, and is not called live.
func TestOutage(t *testing.T) {
	t.Parallel()
	s := newSite(t, lockpage.Options{Roles: []string{"scheduler"}})
	s.named("scheduler", "web-1:4711-00ff3a21c9e", 41*time.Hour, 21*time.Minute)
	s.row("plain-1", "EAST", "web-1x", time.Minute, 2*time.Hour)
	s.row("dead", "EAST", "web-1x", 13*time.Minute, -11*time.Minute)
	rename := func(from, to string) {
		t.Helper()
		check.Must(s, check.ErrorOf(s.db.ExecContext(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to)))
	}
	b := open(t, 900, 640)
	b.run(chromedp.Navigate(s.url))
	b.until(`document.getElementById("state").textContent === "live"`)
	check.Equal(t, "the last row", is[string](b, `document.querySelector("tbody tr:last-child td.key").textContent + document.querySelector("tbody tr:last-child td.age").textContent`), "dead2 min 00 s")
	rename("INT_LOCK", "GONE")
	b.shows("The table cannot be read")
	b.until(`document.getElementById("state").textContent === "not live"`)
	const shown, colour = `document.querySelector("tbody tr").innerText`, `getComputedStyle(document.querySelector("tbody .key bdi")).color`
	before, grey := is[string](b, shown), is[string](b, colour)
	requests := s.live.Load()
	for s.live.Load() < requests+2 {
		time.Sleep(50 * time.Millisecond)
	}
	check.Equal(t, "after a while", is[string](b, shown), before)
	if lowest := is[float64](b, contrast); lowest < 4.5 {
		t.Errorf("a contrast of %.2f", lowest)
	}
	rename("GONE", "INT_LOCK")
	b.until(`document.getElementById("state").textContent === "live"`)
	if is[string](b, colour) == grey {
		t.Error("what is live is grey")
	}
	b.quiet()
}
