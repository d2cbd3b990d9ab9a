//go:build linux

package reliability

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A table holds the measurements of a test. It is logged, and written to the page if the flag
// is set and the test has passed.
type table struct {
	name   string
	file   string // beside the page, if it is not for the page itself
	header []string
	mu     sync.Mutex
	rows   map[int][]string
}

// newTable returns the table between the markers of that name in the page.
func newTable(t *testing.T, name string, header ...string) *table {
	t.Helper()
	b := &table{name: name, header: header, rows: make(map[int][]string)}
	t.Cleanup(func() { b.publish(t) }) // after all subtests
	return b
}

// add adds the row at the given place.
func (b *table) add(place int, cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows[place] = row
}

func (b *table) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "| %s |\n|%s\n", strings.Join(b.header, " | "), strings.Repeat("---|", len(b.header)))
	places := make([]int, 0, len(b.rows))
	for place := range b.rows {
		places = append(places, place)
	}
	slices.Sort(places)
	for _, place := range places {
		fmt.Fprintf(&s, "| %s |\n", strings.Join(b.rows[place], " | "))
	}
	return s.String()
}

func (b *table) publish(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Logf("%s:\n%s", b.name, b)
	if *page == "" || t.Failed() || len(b.rows) == 0 {
		return
	}
	path := *page
	if b.file != "" {
		path = filepath.Join(filepath.Dir(path), b.file)
	}
	if err := replace(path, b.name, b.String()); err != nil {
		t.Error(err)
	}
}

var onPage sync.Mutex

// replace puts text between the markers of that name in a file.
func replace(path, name, text string) error {
	onPage.Lock()
	defer onPage.Unlock()
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- figures: "+name+" -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(string(old), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no markers for the figures of %q", path, name)
	}
	return os.WriteFile(path, []byte(before+begin+text+end+after), 0o644)
}

// spread returns the minimum, the median and the maximum of some durations.
func spread(d []time.Duration) (least, median, greatest string) {
	if len(d) == 0 {
		return "-", "-", "-"
	}
	d = slices.Sorted(slices.Values(d))
	show := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	return show(d[0]), show(d[len(d)/2]), show(d[len(d)-1])
}

func TestReplaceKeepsTheText(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/page.md"
	const text = "a\n<!-- figures: x -->\nold\n<!-- end -->\nb\n<!-- figures: y -->\nold\n<!-- end -->\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replace(path, "y", "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	want := "a\n<!-- figures: x -->\nold\n<!-- end -->\nb\n<!-- figures: y -->\nnew\n<!-- end -->\n"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if err := replace(path, "z", ""); err == nil {
		t.Error("there is no z")
	}
}
