//go:build linux

package reliability

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestFencing runs processes that acquire random locks, kills some of them and starts others.
// The tokens that the holders have recorded for a key must rise.
func TestFencing(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "fencing", "database, driver", "acquisitions", "processes at once", "killed", "time",
		"tokens that did not rise")
	cells := append(servers[:len(servers):len(servers)], sqlite)
	each(t, cells, func(t *testing.T, place int, c cell) {
		b := c.newBase(t)
		began := time.Now()
		acquisitions := 500
		if *full {
			acquisitions = 105_000
		}
		notes, killed := b.runChildren(t, 8, acquisitions)
		var all, wrong int
		for key := range fencedKeys {
			n, w := rising(t, filepath.Join(notes, fmt.Sprint(key)))
			all, wrong = all+n, wrong+w
		}
		if wrong > 0 {
			t.Errorf("%d of %d tokens did not rise", wrong, all)
		}
		figures.add(place, c.name, all, 8, killed, time.Since(began).Round(time.Second), wrong)
	})
}

const fencingTTL = time.Second

// runChildren runs processes until they have made the given number of acquisitions.
func (b *base) runChildren(t *testing.T, processes, acquisitions int) (notes string, killed int) {
	t.Helper()
	notes = t.TempDir()
	for key := range fencedKeys {
		must(t, os.WriteFile(filepath.Join(notes, fmt.Sprint(key)), nil, 0o600))
	}
	do := task{Role: "fenced holders", Kind: b.name, DSN: b.dsn, TTL: fencingTTL, Dir: notes}
	children := make([]*child, processes)
	for i := range children {
		children[i] = startChild(t, do)
		children[i].await("working")
	}
	for noted(t, notes) < acquisitions || killed < 3 {
		pause(t.Context(), 100*time.Millisecond+rand.N(500*time.Millisecond))
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
		i := rand.N(processes)
		children[i].complaints()
		children[i].kill()
		killed++
		children[i] = startChild(t, do)
		children[i].await("working")
	}
	for _, c := range children {
		c.complaints()
		c.kill()
	}
	return notes, killed
}

// complaints fails the test if the child has ended by itself.
func (c *child) complaints() {
	c.t.Helper()
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				c.t.Fatal("a child has ended by itself")
			}
			if strings.HasPrefix(line, "error ") {
				c.t.Fatal(line)
			}
		default:
			return
		}
	}
}

// lineLength is the length of each line that a holder writes.
const lineLength = 22

// noted returns the approximate number of recorded acquisitions.
func noted(t *testing.T, notes string) int {
	t.Helper()
	var size int64
	for key := range fencedKeys {
		info, err := os.Stat(filepath.Join(notes, fmt.Sprint(key)))
		must(t, err)
		size += info.Size()
	}
	return int(size / (2 * lineLength))
}

// rising returns the number of tokens that holders have recorded, and how many of them were
// not higher than all earlier ones.
func rising(t *testing.T, path string) (all, wrong int) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var highest int64
	for line := range strings.Lines(string(text)) {
		rest, confirmed := strings.CutPrefix(line, "+")
		if !confirmed {
			continue
		}
		token, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
		must(t, err)
		all++
		if token <= highest {
			wrong++
		}
		highest = max(highest, token)
	}
	return all, wrong
}

func TestRisingCountsWrongTokens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notes")
	const text = " 01\n+01\n 02\n 03\n+03\n 02\n+02\n+03\n 09\n"
	must(t, os.WriteFile(path, []byte(text), 0o600))
	if all, wrong := rising(t, path); all != 4 || wrong != 2 {
		t.Errorf("%d of %d", wrong, all)
	}
}
