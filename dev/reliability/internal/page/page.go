// Package page writes tables of measurements into pages of the documentation.
package page

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// A Table holds measurements. It is safe for concurrent use.
type Table struct {
	header []string
	mu     sync.Mutex
	rows   map[int][]string
}

// NewTable returns an empty table.
func NewTable(header ...string) *Table {
	return &Table{header: header, rows: make(map[int][]string)}
}

// Add adds the row at the given place.
func (t *Table) Add(place int, cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[place] = row
}

// IsEmpty reports whether the table has no rows.
func (t *Table) IsEmpty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.rows) == 0
}

// String returns the table in Markdown.
func (t *Table) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var s strings.Builder
	fmt.Fprintf(&s, "| %s |\n|%s\n", strings.Join(t.header, " | "), strings.Repeat("---|", len(t.header)))
	places := make([]int, 0, len(t.rows))
	for place := range t.rows {
		places = append(places, place)
	}
	slices.Sort(places)
	for _, place := range places {
		fmt.Fprintf(&s, "| %s |\n", strings.Join(t.rows[place], " | "))
	}
	return s.String()
}

const end = "<!-- end -->"

func beginOf(name string) string { return "<!-- figures: " + name + " -->\n" }

var onPage sync.Mutex

// Replace puts text between the markers of that name in a file.
func Replace(path, name, text string) error {
	onPage.Lock()
	defer onPage.Unlock()
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin := beginOf(name)
	before, rest, found := strings.Cut(string(old), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no markers for the figures of %q", path, name)
	}
	return os.WriteFile(path, []byte(before+begin+text+end+after), 0o644) //nolint:gosec // a page of the documentation
}

// PutRow puts a row into the table between the markers of that name in a file, in place of the one
// whose first cells, as many as keys, are the same.
func PutRow(path, name string, keys int, cells ...any) error {
	text, err := Between(path, name)
	if err != nil {
		return err
	}
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	same := "| " + strings.Join(row[:keys], " | ") + " |"
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	line := "| " + strings.Join(row, " | ") + " |"
	if i := slices.IndexFunc(lines, func(old string) bool { return strings.HasPrefix(old, same) }); i >= 0 {
		lines[i] = line
	} else {
		lines = append(lines, line)
	}
	return Replace(path, name, strings.Join(lines, "\n")+"\n")
}

// Between returns the text between the markers of that name in a file.
func Between(path, name string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(string(text), beginOf(name))
	inside, _, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("%s has no markers for the figures of %q", path, name)
	}
	return inside, nil
}
