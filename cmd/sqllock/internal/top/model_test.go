package top

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/test/golden"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// someLocks are the locks of the tests.
func someLocks() reading {
	return reading{at: noon, locks: listing.Named([]sqllock.Row{
		{Region: "DEFAULT", LockKey: "d5642a7a-3ff9-3c02-839e-0a4ee8b8f024", Holder: "web-1:4711-0a3f9c52e11", Age: 12 * time.Second, Left: 18 * time.Second},
		{Region: "billing", LockKey: "nightly-report", Holder: "batch-2:991-0b1c33e0a42", Age: 75 * time.Minute, Left: 55 * time.Second},
		{Region: "DEFAULT", LockKey: "cart/7", Holder: "web-3:20-0a3f9c52f02", Age: time.Hour, Left: -time.Minute},
		{Region: "x\x1b[2J", LockKey: "key\x1b[31m", Holder: "8f6b4a52-4a0e-4d3b-9f3e-0f2a1f3d5c77", Age: time.Second, Left: 3 * time.Second},
	}, map[string]string{"d5642a7a-3ff9-3c02-839e-0a4ee8b8f024": "orders/42"})}
}

func shown() *model {
	m := &model{order: listing.Oldest}
	m.update(someLocks())
	m.frame(100, 12, noon)
	return m
}

// screen returns a frame without colours.
func screen(m *model, width, height int) string {
	lines := m.frame(width, height, noon.Add(2*time.Second))
	for i, line := range lines {
		lines[i] = strings.TrimRight(text.StripEscape(text.Trim(line, width)), " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestScreen compares frames with golden files: wide and narrow, and after keys.
func TestScreen(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]string{"start": "", "sorted": "ll", "search": "/web", "hidden": "e ", "confirm": "\x1b[Bu", "typed": "uyes"} {
		m := shown()
		for _, k := range keysOf(keys) {
			m.press(k)
		}
		golden.Check(t, filepath.Join("testdata", name+".txt"), screen(m, 110, 9)+screen(m, 60, 7))
	}
	m := shown()
	m.update(reading{err: errors.New("the database is\x1b[2J down")})
	golden.Check(t, filepath.Join("testdata", "error.txt"), screen(m, 110, 9))
}

// TestNoControlCharacters draws text of the table that would take over the terminal.
func TestNoControlCharacters(t *testing.T) {
	t.Parallel()
	m := shown()
	for _, line := range m.frame(200, 20, noon) {
		if strings.Contains(line, "\x1b[2J") || strings.Contains(line, "\x1b[31mkey") || strings.Contains(line, "key\x1b") {
			t.Errorf("%q", line)
		}
	}
}

// TestUnlockAsks removes the selected row only after the word yes.
func TestUnlockAsks(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]action{
		"u\r": nothing, "uy\r": nothing, "uYES\r": nothing, "uyes\x1b": nothing, "uyes\r": remove, "\x1b[3~yes\r": remove, "uyex\x7fs\r": remove, "q": quit, "u\x03": quit, "\x1b": quit,
	} {
		m, got := shown(), nothing
		m.press(down)
		for _, k := range keysOf(keys) {
			if got = m.press(k); got != nothing {
				break
			}
		}
		if got != want || want == remove && m.asked.LockKey != "cart/7" {
			t.Errorf("%q: %v, asked for %+v", keys, got, m.asked)
		}
	}
	m := shown()
	m.askedName = "k"
	for want, told := range map[string]func(){
		"removed k, held by h":    func() { m.removed(sqllock.Row{LockKey: "k", Holder: "h"}, true, nil) },
		"another holder":          func() { m.removed(sqllock.Row{LockKey: "k"}, false, nil) },
		"not removed: no network": func() { m.removed(sqllock.Row{LockKey: "k"}, false, errors.New("no network")) },
	} {
		if told(); !strings.Contains(m.message, want) {
			t.Errorf("%q, want %q", m.message, want)
		}
	}
}

// TestSelectionStays keeps the selected lock selected when others come and go, and visible.
func TestSelectionStays(t *testing.T) {
	t.Parallel()
	m := shown()
	m.press(end)
	if m.selected.lockKey != "key\x1b[31m" {
		t.Fatalf("%+v", m.selected)
	}
	m.frame(100, 6, noon) // two lines of locks
	if m.top != 2 {
		t.Errorf("the first line is %d", m.top)
	}
	now := someLocks()
	now.locks = append(now.locks, listing.Lock{Row: sqllock.Row{LockKey: "new", Holder: "h", Left: time.Second}})
	m.update(now)
	if m.selected.lockKey != "key\x1b[31m" {
		t.Errorf("%+v", m.selected)
	}
	now = someLocks()
	now.locks = now.locks[:2]
	m.update(now)
	if m.selected.lockKey == "key\x1b[31m" || m.position() < 0 {
		t.Errorf("%+v", m.selected)
	}
	m.update(reading{at: noon})
	m.press(pageDown)
	if m.press("u"); m.mode != choosing || m.position() != -1 {
		t.Error("a row of an empty table is selected")
	}
	m.frame(100, 1, noon)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	got := keysOf("a\x1b[A\x1b[6~é\x1b[15~\r\x1b[1;5Cq\x1b")
	want := []key{"a", up, pageDown, "é", enter, "q", escape}
	if len(got) != len(want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
