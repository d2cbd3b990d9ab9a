package top

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/runs"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/golden"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// A fakeTable is a table whose next reading is known. It removes what it is asked to.
type fakeTable struct {
	next    reading
	reads   int
	removed []sqllock.Row
}

func (f *fakeTable) read(context.Context) reading {
	f.reads++
	return f.next
}

func (f *fakeTable) remove(_ context.Context, r sqllock.Row) (bool, error) {
	f.removed = append(f.removed, r)
	return true, nil
}

// someLocks are the locks of the tests.
func someLocks() reading {
	return reading{at: noon, locks: listing.Named([]sqllock.Row{
		{Region: "DEFAULT", LockKey: "d5642a7a-3ff9-3c02-839e-0a4ee8b8f024", Holder: "web-1:4711-0a3f9c52e11", Age: 12 * time.Second, Left: 18 * time.Second},
		{Region: "billing", LockKey: "nightly-report", Holder: "batch-2:991-0b1c33e0a42", Age: 75 * time.Minute, Left: 55 * time.Second},
		{Region: "DEFAULT", LockKey: "cart/7", Holder: "web-3:20-0a3f9c52f02", Age: time.Hour, Left: -time.Minute},
		{Region: "x\x1b[2J", LockKey: "key\x1b[31m", Holder: "8f6b4a52-4a0e-4d3b-9f3e-0f2a1f3d5c77", Age: time.Second, Left: 3 * time.Second},
	}, map[string]string{"d5642a7a-3ff9-3c02-839e-0a4ee8b8f024": "orders/42"})}
}

// shown returns a model of 100 columns and 12 lines.
func shown(t *testing.T) (*model, *fakeTable) {
	t.Helper()
	table := &fakeTable{}
	m := newModel(t.Context(), table, someLocks(), options{interval: time.Second, sort: string(listing.Oldest)})
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 12})
	return m, table
}

// TestUnlockOfAKeptRow asks about a row that no process holds any more.
func TestUnlockOfAKeptRow(t *testing.T) {
	t.Parallel()
	rows := []sqllock.Row{{Region: "DEFAULT", LockKey: "nightly", Holder: "web-1:4711-k0a3f9c52e1", Left: time.Hour}}
	m := newModel(t.Context(), &fakeTable{}, reading{at: noon, locks: listing.Named(rows, nil)}, options{interval: time.Second, sort: string(listing.Oldest)})
	m.Update(tea.WindowSizeMsg{Width: 150, Height: 12})
	press(m, "u")
	check.Contains(t, screen(m, 150, 12), "unlock nightly: its holder web-1:4711-k0a3f9c52e1 has finished, and its minimum hold ends\n")
}

// TestABusyKey has the row of a lock that is free: it was released, and given an end of a day before.
func TestABusyKey(t *testing.T) {
	t.Parallel()
	rows := func(number string, age, left time.Duration) []listing.Lock {
		return listing.Named([]sqllock.Row{{Region: "DEFAULT", LockKey: "busy", Holder: "a-" + number, Age: age, Left: left}}, nil)
	}
	m := newModel(t.Context(), &fakeTable{}, reading{at: noon, locks: rows("00000000001", time.Second, 30*time.Second)}, options{interval: time.Second, sort: string(listing.Oldest)})
	press(m, "<enter>")
	m.Update(reading{at: noon.Add(time.Second), locks: rows("k0000000002", 2*time.Second, -24*time.Hour)})
	text := screen(m, 100, 12)
	if check.Contains(t, text, "finished   acquired 4s ago"); strings.Contains(text, "24h") {
		t.Error(text)
	}
	press(m, "u")
	m.Update(removal{row: m.asked, deleted: true})
	check.Equal(t, "after the removal", m.message, "removed busy")
	m.Update(reading{at: noon.Add(2 * time.Second), locks: rows("00000000003", time.Second/2, 30*time.Second)})
	for _, a := range m.history.holds {
		if !a.until.IsZero() && a.until.Before(a.since) {
			t.Errorf("held from %v to %v", a.since, a.until)
		}
	}
	if lines := m.history.lines(lockID{region: "DEFAULT", lockKey: "busy"}, m.at); len(lines) != 2 {
		t.Errorf("%d acquisitions: %q", len(lines), lines)
	}
}

// keyOf returns a key: a letter, or the one of a name between angle brackets.
var keyOf = map[string]tea.KeyPressMsg{
	"<up>": {Code: tea.KeyUp}, "<down>": {Code: tea.KeyDown}, "<pgup>": {Code: tea.KeyPgUp}, "<pgdown>": {Code: tea.KeyPgDown},
	"<home>": {Code: tea.KeyHome}, "<end>": {Code: tea.KeyEnd}, "<delete>": {Code: tea.KeyDelete}, "<enter>": {Code: tea.KeyEnter},
	"<esc>": {Code: tea.KeyEscape}, "<backspace>": {Code: tea.KeyBackspace}, "<ctrl+c>": {Code: 'c', Mod: tea.ModCtrl},
}

// press types keys, and returns the message that the last of them has led to, or nil. What the command
// of another key delivers, the model gets before the next key.
func press(m *model, keys string) (message tea.Msg) {
	for keys != "" {
		if message != nil {
			m.Update(message)
		}
		message = nil
		key, size := tea.KeyPressMsg{Code: rune(keys[0]), Text: keys[:1]}, 1
		if end := strings.IndexByte(keys, '>'); keys[0] == '<' {
			key, size = keyOf[keys[:end+1]], end+1
		}
		keys = keys[size:]
		if _, cmd := m.Update(key); cmd != nil {
			message = cmd()
		}
	}
	return message
}

// screen returns a frame two seconds after the reading, without styles.
func screen(m *model, width, height int) string {
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	m.now = m.at.Add(2 * time.Second)
	var text strings.Builder
	for line := range strings.SplitSeq(m.View().Content, "\n") {
		text.WriteString(strings.TrimRight(styles.ReplaceAllString(line, ""), " ") + "\n")
	}
	return text.String()
}

// styles are the sequences that top itself writes. Others, which would take over the terminal, stay, so that
// they are seen in a screen.
var styles = regexp.MustCompile("\x1b\\[(1|2|7|3[136])?m")

// TestScreen compares frames with golden files: wide, narrow and low, and after keys. Text of the table
// that has control characters is quoted.
func TestScreen(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]string{
		"start": "", "sorted": "ll", "search": "/web", "hidden": "e ", "confirm": "<down>u", "typed": "uyes", "help": "?", "details": "jj<enter>",
	} {
		m, _ := shown(t)
		press(m, keys)
		golden.Check(t, filepath.Join("testdata", name+".txt"), screen(m, 110, 9)+screen(m, 60, 7)+screen(m, 60, 2))
	}
	m, _ := shown(t)
	m.Update(reading{err: errors.New("the database is\x1b[2J down, as is said at length by " + strings.Repeat("the driver ", 9))})
	outage := screen(m, 110, 9) + screen(m, 60, 12)
	m.Update(someLocks())
	m.Update(removal{err: errors.New(strings.Repeat("no right to remove it ", 4))})
	golden.Check(t, filepath.Join("testdata", "error.txt"), outage+screen(m, 60, 7))
}

// TestSeats shows permits and readers in one line and each of them in the details, where one of them is unlocked.
func TestSeats(t *testing.T) {
	t.Parallel()
	web := sqllock.Process{Application: "shop", Version: "1.4.2", Host: "web-7", PID: 4711}
	m, table := shown(t)
	m.Update(reading{at: noon, locks: listing.Named([]sqllock.Row{
		{Region: "DEFAULT", LockKey: "render permit 1", Holder: "h1", Process: web, Age: time.Minute, Left: 9 * time.Second},
		{Region: "DEFAULT", LockKey: "render permit 0", Holder: "h0", Age: time.Second, Left: 8 * time.Second},
		{Region: "DEFAULT", LockKey: "render permit turn", Holder: "h2", Age: time.Second, Left: 7 * time.Second},
		{Region: "DEFAULT", LockKey: "prices reader 4", Holder: "h3", Age: time.Hour, Left: time.Second},
		{Region: "DEFAULT", LockKey: "prices", Holder: "h4", Age: 2 * time.Second, Left: 3 * time.Second},
	}, nil)})
	text := screen(m, 110, 9) + screen(m, 60, 7)
	if press(m, "ju"); m.mode != choosing || !strings.Contains(m.message, "select one") {
		t.Errorf("unlocks one of several rows: %q", m.message)
	}
	text += screen(m, 110, 9)
	press(m, "<enter>jj")
	text += screen(m, 60, 24)
	screen(m, 110, 9)
	press(m, "k")
	text += screen(m, 110, 9)
	golden.Check(t, filepath.Join("testdata", "seats.txt"), text)
	now := m.reading
	now.locks = now.locks[:1] // permit 0 is free, and permit 1 stays the chosen one
	m.Update(now)
	if press(m, "uyes<enter>"); len(table.removed) != 1 || table.removed[0].Holder != "h1" {
		t.Errorf("removed %+v", table.removed)
	}
}

// TestWaiters shows processes that wait for a lock and for a semaphore.
func TestWaiters(t *testing.T) {
	t.Parallel()
	web := sqllock.Process{Application: "shop", Version: "1.4.2", Host: "web-7", PID: 4711}
	m, _ := shown(t)
	now := someLocks()
	now.locks = append(now.locks, listing.Named([]sqllock.Row{{Region: "DEFAULT", LockKey: "render permit 1", Holder: "h1", Age: time.Minute, Left: 9 * time.Second}}, nil)...)
	now.waits = listing.WaitersOf([]sqllock.Waiter{
		{Region: "DEFAULT", LockKey: now.locks[0].LockKey, ClientID: "web-7:4711", Process: web, Waited: 45 * time.Second, Callers: 3},
		{Region: "DEFAULT", LockKey: now.locks[0].LockKey, ClientID: "\x1b[2J", Waited: 6 * time.Second, Callers: 1},
		{Region: "DEFAULT", LockKey: "render", ClientID: "web-8:1", Waited: time.Hour, Callers: 1},
		{Region: "other", LockKey: "nightly-report", ClientID: "web-8:1", Waited: time.Hour, Callers: 1},
	})
	now.locks[0].TTL = 40 * time.Second // it is overdue
	m.Update(now)
	text := screen(m, 110, 9) + screen(m, 60, 9)
	press(m, "/orders<enter><enter>")
	var lines strings.Builder
	check.Must(t, printTable(&lines, now, listing.Oldest))
	golden.Check(t, filepath.Join("testdata", "waiters.txt"), text+screen(m, 110, 14)+lines.String())
}

// TestHistory shows what has become of the holders of a lock, with its details open all the time.
func TestHistory(t *testing.T) {
	t.Parallel()
	m, _ := shown(t)
	press(m, "/orders<enter><enter>")
	orders := someLocks().locks[0]
	for at, now := range []struct {
		age, left time.Duration
		holder    string
	}{
		1:  {22, 30, orders.Row.Holder}, // renewed
		2:  {32, 30, orders.Row.Holder}, // and again, and released
		3:  {4, 5, "expires"},
		9:  {20, 10, "releases"},
		10: {86400, 10, "is hidden by others"},
	} {
		if orders.Row.Holder = now.holder; now.holder != "" {
			orders.Age, orders.Left = now.age*time.Second, now.left*time.Second
			m.Update(reading{at: noon.Add(time.Duration(at) * 10 * time.Second), locks: []listing.Lock{orders}})
		}
	}
	m.Update(reading{at: noon.Add(101 * time.Second), more: true})
	text := screen(m, 110, 14)
	if press(m, "u"); m.mode != choosing {
		t.Error("a lock that is not there is unlocked")
	}
	press(m, "GgG<pgup><down><up>")
	golden.Check(t, filepath.Join("testdata", "history.txt"), text+screen(m, 50, 12))
	m.history.holds = slices.Repeat(m.history.holds, maxHolds)
	if m.Update(someLocks()); len(m.history.holds) != maxHolds {
		t.Errorf("%d acquisitions are remembered", len(m.history.holds))
	}
}

// TestKeys sorts, searches, pauses and hides, and shows what has changed.
func TestKeys(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"n":                        "KEY↑",
		"nn":                       "KEY↓",
		"a":                        "AGE↑",
		"r":                        "REGION↑",
		"h":                        "HOLDER↑",
		"l":                        "LEFT↑",
		"e":                        "expired hidden",
		" ":                        "paused",
		"/web<enter>":              `search "web": 2`,
		"/webx<backspace><enter>":  `search "web": 2`,
		"/web<enter>/<esc>":        "3 held, 1 expired\n",
		"/web<enter><esc>":         "3 held, 1 expired\n",
		"/web<enter><enter><esc>":  `search "web": 2`,
		"<esc>":                    "q quits",
		"/nothing":                 "Esc ends it",
		"?":                        "page down",
		"??":                       "AGE↓",
		"<enter>?<esc>":            "LOCK_KEY",
		"<enter>?<esc><esc>":       "AGE↓",
		"j<enter>a":                "d5642a7a-3ff9-3c02-839e-0a4ee8b8f024",
		"Gkgj<enter>":              "web-1:4711-0a3f9c52e11",
		"uno<enter>":               "nothing was removed",
		"u<esc>":                   "nothing was removed",
		"<end><up><up>uyes<enter>": "removing…",
	} {
		m, _ := shown(t)
		press(m, keys)
		check.Contains(t, screen(m, 110, 9), want)
	}
	m, _ := shown(t)
	if m.Update(tea.PasteMsg{Content: "qu"}); m.mode != choosing {
		t.Error("pasted text chooses")
	}
	press(m, "/")
	if m.Update(tea.PasteMsg{Content: "web\n"}); m.search != "web" {
		t.Errorf("the pasted search is %q", m.search)
	}
}

// TestCommands quits and unlocks by the keys for it, the latter only after the word yes, and does neither
// while other text is typed.
func TestCommands(t *testing.T) {
	t.Parallel()
	const nothing, quit, remove = "", "quit", "remove cart/7"
	for keys, want := range map[string]string{
		"q": quit, "<esc>": nothing, "?q": nothing, "?qq": quit, "<enter>q": nothing, "<enter>qq": quit, "/web<enter><esc><esc>": nothing, "/web<enter>q": quit,
		"<ctrl+c>": quit, "u<ctrl+c>": quit, "/<ctrl+c>": quit, "/q": nothing, "uq": nothing, "x": nothing,
		"u<enter>": nothing, "uy<enter>": nothing, "uYES<enter>": nothing, "uyes<esc>": nothing,
		"uyes<enter>": remove, "<delete>yes<enter>": remove, "uyex<backspace>s<enter>": remove, "<enter>uyes<enter>": remove, "?uyes<enter>": nothing,
	} {
		m, table := shown(t)
		got := nothing
		switch press(m, "<end>"+keys).(type) {
		case tea.QuitMsg:
			got = quit
		case removal:
			got = "remove " + table.removed[0].LockKey
		}
		if got != want {
			t.Errorf("%s: %q, want %q", keys, got, want)
		}
	}
	m, _ := shown(t)
	m.askedName = "k"
	for want, answer := range map[string]removal{
		"removed k, held by h":                         {row: sqllock.Row{Holder: "h"}, deleted: true},
		"k was released or acquired by another holder": {},
		"not removed: no network":                      {err: errors.New("no network")},
	} {
		if m.Update(answer); !strings.Contains(m.message, want) {
			t.Errorf("%q, want %q", m.message, want)
		}
	}
}

// TestSelectionStays keeps the selected lock selected when others come and go, and visible.
func TestSelectionStays(t *testing.T) {
	t.Parallel()
	m, _ := shown(t)
	press(m, "<end>")
	if m.selected.lockKey != "cart/7" {
		t.Fatalf("%+v", m.selected)
	}
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 6}) // two lines of locks
	check.Equal(t, "the first line is", m.top, 2)
	now := someLocks()
	now.locks = append(now.locks, listing.Lock{Row: sqllock.Row{LockKey: "new", Holder: "h", Left: time.Second}})
	m.Update(now)
	if m.selected.lockKey != "cart/7" {
		t.Errorf("%+v", m.selected)
	}
	now = someLocks()
	now.locks = now.locks[:2]
	m.Update(now)
	if m.selected.lockKey == "cart/7" || m.position() < 0 {
		t.Errorf("%+v", m.selected)
	}
	m.Update(reading{at: noon})
	if press(m, "<pgdown>u"); m.mode != choosing || m.position() != -1 {
		t.Error("a row of an empty table is selected")
	}
}

// TestIntervals reads the table after each interval, or less often if the database takes its time, and not
// while it is paused.
func TestIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for took, want := range map[time.Duration]time.Duration{0: time.Second, time.Minute: 10 * time.Minute} {
			m, table := shown(t)
			table.next = someLocks()
			table.next.took = took
			_, read := m.Update(due{})
			_, wait := m.Update(read())
			began := time.Now()
			if _, ok := wait().(due); !ok || time.Since(began) != want {
				t.Errorf("after a reading of %v, the next one is due after %v", took, time.Since(began))
			}
		}
		m, table := shown(t)
		press(m, " ")
		_, wait := m.Update(due{})
		if _, ok := wait().(due); !ok || table.reads > 0 {
			t.Error("the table is read during a pause")
		}
	})
}

// TestNoAnswer waits for a reading: the last one stays as it was, and is called old.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, table := shown(t)
		table.next = someLocks()
		table.next.at = time.Now()
		m.Update(table.read(t.Context()))
		_, read := m.Update(due{})
		for passed, want := range map[time.Duration]string{2 * time.Second: "1h15m     53s", 4 * time.Second: "1h15m     55s"} {
			m.now = m.at.Add(passed)
			text := styles.ReplaceAllString(m.View().Content, "")
			if check.Contains(t, text, want); strings.Contains(text, "no answer for 4s") != (passed > patience) {
				t.Error(text)
			}
		}
		if m.Update(read()); m.stale() != "" {
			t.Error(m.stale())
		}
	})
}

// TestCount ends after so many tables.
func TestCount(t *testing.T) {
	t.Parallel()
	m := newModel(t.Context(), &fakeTable{}, someLocks(), options{count: 2, sort: string(listing.Oldest)})
	_, cmd := m.Update(someLocks())
	if _, quits := cmd().(tea.QuitMsg); !quits {
		t.Error("it goes on after two tables")
	}
	m = newModel(t.Context(), &fakeTable{}, someLocks(), options{count: 1, sort: string(listing.Oldest)})
	if _, quits := m.Init()().(tea.QuitMsg); !quits {
		t.Error("it goes on after one table")
	}
}

// TestRunsOfAJob shows the lock of a job alone, before and after its first success.
func TestRunsOfAJob(t *testing.T) {
	t.Parallel()
	m, _ := shown(t)
	failed, code, day := someLocks(), 3, 24*time.Hour
	job := runs.Run{
		Region: "billing", LockKey: "nightly-report", Runs: 1, Failures: 1, Skips: 4,
		Last: &runs.Last{Process: sqllock.Process{Host: "web-7", PID: 4711, Application: "report.sh"}, Ended: time.Hour, Took: 41 * time.Second, Failed: true, Code: &code},
	}
	failed.runs, failed.runsAt = []runs.Run{{Region: "DEFAULT", LockKey: "nightly-report", Runs: 9}, job}, noon.Add(-5*time.Second)
	m.Update(failed)
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	press(m, "<enter>")
	check.Contains(t, styles.ReplaceAllString(m.View().Content, ""),
		"last run   failed, exit code 3, 1h0m ago, took 41s, by report.sh on web-7, pid 4711", "success    never", "runs       1, 1 failed, 4 skipped")
	job.Succeeded, job.Last.Failed = &day, false
	failed.runs = []runs.Run{job}
	m.Update(failed)
	check.Contains(t, styles.ReplaceAllString(m.View().Content, ""), "last run   succeeded, 1h0m ago", "success    24h0m ago")
}
