package top

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
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
	m.now = noon.Add(2 * time.Second)
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
	for name, keys := range map[string]string{"start": "", "sorted": "ll", "search": "/web", "hidden": "e ", "confirm": "<down>u", "typed": "uyes"} {
		m, _ := shown(t)
		press(m, keys)
		golden.Check(t, filepath.Join("testdata", name+".txt"), screen(m, 110, 9)+screen(m, 60, 7)+screen(m, 60, 2))
	}
	m, _ := shown(t)
	m.Update(reading{err: errors.New("the database is\x1b[2J down")})
	golden.Check(t, filepath.Join("testdata", "error.txt"), screen(m, 110, 9))
}

// TestKeys sorts, searches, pauses and hides, and shows what has changed.
func TestKeys(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"k":                        "KEY↑",
		"kk":                       "KEY↓",
		"a":                        "AGE↑",
		"r":                        "REGION↑",
		"h":                        "HOLDER↑",
		"l":                        "LEFT↑",
		"e":                        "expired rows hidden",
		" ":                        "paused",
		"/web<enter>":              `search "web": 2`,
		"/webx<backspace><enter>":  `search "web": 2`,
		"/web<enter>/<esc>":        "3 held, 1 expired\n",
		"uno<enter>":               "nothing was removed",
		"u<esc>":                   "nothing was removed",
		"<end><up><up>uyes<enter>": "removing…",
	} {
		m, _ := shown(t)
		press(m, keys)
		if text := screen(m, 110, 9); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", keys, want, text)
		}
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
		"q": quit, "<esc>": quit, "<ctrl+c>": quit, "u<ctrl+c>": quit, "/<ctrl+c>": quit, "/q": nothing, "uq": nothing, "x": nothing,
		"u<enter>": nothing, "uy<enter>": nothing, "uYES<enter>": nothing, "uyes<esc>": nothing,
		"uyes<enter>": remove, "<delete>yes<enter>": remove, "uyex<backspace>s<enter>": remove,
	} {
		m, table := shown(t)
		got := nothing
		switch press(m, "<down>"+keys).(type) {
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
	if m.selected.lockKey != "key\x1b[31m" {
		t.Fatalf("%+v", m.selected)
	}
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 6}) // two lines of locks
	if m.top != 2 {
		t.Errorf("the first line is %d", m.top)
	}
	now := someLocks()
	now.locks = append(now.locks, listing.Lock{Row: sqllock.Row{LockKey: "new", Holder: "h", Left: time.Second}})
	m.Update(now)
	if m.selected.lockKey != "key\x1b[31m" {
		t.Errorf("%+v", m.selected)
	}
	now = someLocks()
	now.locks = now.locks[:2]
	m.Update(now)
	if m.selected.lockKey == "key\x1b[31m" || m.position() < 0 {
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
