// Package page writes tables of measurements into pages of the documentation.
package page

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// A Table holds measurements. It is safe for concurrent use.
type Table struct {
	header []string
	mu     sync.Mutex
	rows   map[int]string
}

// NewTable returns an empty table.
func NewTable(header ...string) *Table {
	return &Table{header: header, rows: make(map[int]string)}
}

// Add adds the row at the given place.
func (t *Table) Add(place int, cells ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[place] = rowOf(cells)
}

// rowOf returns a row in Markdown.
func rowOf(cells []any) string {
	row := "|"
	for _, cell := range cells {
		row += fmt.Sprintf(" %v |", cell)
	}
	return row
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
	for _, place := range slices.Sorted(maps.Keys(t.rows)) {
		fmt.Fprintln(&s, t.rows[place])
	}
	return s.String()
}

// Replace puts text between the markers of that name in a file.
func Replace(path, name, text string) error {
	return edit(path, name, func(string) string { return text })
}

// PutRow puts a row into the table between the markers of that name in a file, in place of the one
// whose first cells, as many as keys, are the same.
func PutRow(path, name string, keys int, cells ...any) error {
	row, same := rowOf(cells), rowOf(cells[:keys])
	return edit(path, name, func(table string) string {
		lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
		if i := slices.IndexFunc(lines, func(old string) bool { return strings.HasPrefix(old, same) }); i >= 0 {
			lines[i] = row
		} else {
			lines = append(lines, row)
		}
		return strings.Join(lines, "\n") + "\n"
	})
}

var onPage sync.Mutex

// edit changes the text between the markers of that name in a file.
func edit(path, name string, change func(text string) string) error {
	onPage.Lock()
	defer onPage.Unlock()
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- figures: "+name+" -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(string(page), begin)
	text, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no markers for the figures of %q", path, name)
	}
	return os.WriteFile(path, []byte(before+begin+change(text)+end+after), 0o644) //nolint:gosec // a page of the documentation
}
