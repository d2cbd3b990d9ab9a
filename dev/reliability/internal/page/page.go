// Package page writes tables of measurements into pages of the documentation.
package page

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// Row returns a row of a table in Markdown.
func Row(cells ...any) string {
	row := "|"
	for _, cell := range cells {
		row += fmt.Sprintf(" %v |", cell)
	}
	return row
}

// Replace puts text between the markers of that name in a file.
func Replace(path, name, text string) error {
	return edit(path, name, func(string) string { return text })
}

// PutRow puts a row into the table between the markers of that name in a file, in place of the one
// whose first cells, as many as keys, are the same.
func PutRow(path, name string, keys int, cells ...any) error {
	row, same := Row(cells...), Row(cells[:keys]...)
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
