//go:build linux

package reliability

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	figures "github.com/sqllock/sqllock/dev/reliability/internal/page"
	"github.com/sqllock/sqllock/internal/test/check"
)

// A table holds the measurements of a test. It is logged, and written to the page if the flag
// is set and the test has passed.
type table struct {
	name   string
	header []string

	mu   sync.Mutex
	rows map[int]string // by their places
}

// newTable returns the table between the markers of that name in the page.
func newTable(t *testing.T, name string, header ...string) *table {
	t.Helper()
	b := &table{name: name, header: header, rows: make(map[int]string)}
	t.Cleanup(func() { b.publish(t) }) // after all subtests
	return b
}

// add adds the row at the given place.
func (b *table) add(place int, cells ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows[place] = figures.Row(cells...)
}

func (b *table) publish(t *testing.T) {
	t.Helper()
	text := fmt.Sprintf("| %s |\n|%s\n", strings.Join(b.header, " | "), strings.Repeat("---|", len(b.header)))
	for _, place := range slices.Sorted(maps.Keys(b.rows)) {
		text += b.rows[place] + "\n"
	}
	t.Logf("%s:\n%s", b.name, text)
	if *page == "" || t.Failed() || len(b.rows) == 0 {
		return
	}
	check.Is(t, figures.Replace(*page, b.name, text), nil)
}
