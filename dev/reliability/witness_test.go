//go:build linux

package reliability

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gofrs/flock"

	"github.com/sqllock/sqllock"
)

// A witness sees who holds something at a time, over all processes, and knows nothing of the lock
// library: it is a file that is read and written under a lock of the kernel.
type witness struct {
	path     string
	capacity int // how much of each thing there is
}

// A stay is the time in which a caller holds something.
type stay struct {
	ID     string
	Takes  map[string]int   // how much of which things
	Tokens map[string]int64 // by row; each must be higher than those of earlier stays
}

// sight is the content of the file.
type sight struct {
	Inside     map[string]stay
	Highest    map[string]int64 // tokens, by row
	Tokens     int              // how many there were
	Violations []string
}

// enter notes that a stay has begun, and whether there was room for it.
func (w witness) enter(s stay) error {
	return w.see(func(seen *sight) {
		for thing, amount := range s.Takes {
			for _, other := range seen.Inside {
				amount += other.Takes[thing]
			}
			if amount > w.capacity {
				seen.Violations = append(seen.Violations, fmt.Sprintf("%s: %d of %d are taken, by %v and %v", thing, amount, w.capacity, s, seen.Inside))
			}
		}
		for row, token := range s.Tokens {
			seen.add(row, token)
		}
		seen.Inside[s.ID] = s
	})
}

// add notes a token, which must be higher than those before.
func (s *sight) add(row string, token int64) {
	if token <= s.Highest[row] {
		s.Violations = append(s.Violations, fmt.Sprintf("%s: token %d comes after %d", row, token, s.Highest[row]))
	}
	s.Highest[row] = max(s.Highest[row], token)
	s.Tokens++
}

// record notes the token of a lease that lasts. A later holder's comes after it, since that holder waits for the witness.
func (w witness) record(row string, lease *sqllock.Lease) error {
	return w.see(func(seen *sight) {
		if lease.Context().Err() == nil {
			seen.add(row, lease.Token())
		}
	})
}

var errNotInside = errors.New("it was not inside")

// leave notes that a stay has ended. Its caller releases the lock afterwards.
func (w witness) leave(s stay) (err error) {
	return errors.Join(w.see(func(seen *sight) {
		if _, ok := seen.Inside[s.ID]; !ok {
			err = fmt.Errorf("%w: %s", errNotInside, s.ID)
		}
		delete(seen.Inside, s.ID)
	}), err)
}

// violations returns what was wrong. All stays must have ended.
func (w witness) violations() (all []string, err error) {
	err = w.see(func(seen *sight) {
		all = seen.Violations
		for _, id := range slices.Sorted(maps.Keys(seen.Inside)) {
			all = append(all, id+" has not left")
		}
	})
	return all, err
}

// see reads the file, and writes it with what look has changed.
func (w witness) see(look func(*sight)) error {
	turn := flock.New(w.path + ".lock")
	if err := turn.Lock(); err != nil {
		return err
	}
	defer turn.Close()
	seen, err := w.read()
	if err != nil {
		return err
	}
	look(&seen)
	text, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	if err := os.WriteFile(w.path+".new", text, 0o600); err != nil { // the process may be killed meanwhile
		return err
	}
	return os.Rename(w.path+".new", w.path)
}

// read reads the file, which is complete at each instant.
func (w witness) read() (sight, error) {
	seen := sight{Inside: make(map[string]stay), Highest: make(map[string]int64)}
	text, err := os.ReadFile(w.path)
	if errors.Is(err, os.ErrNotExist) {
		return seen, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &seen)
	}
	return seen, err
}

// TestWitness: the witness of [TestContention], and of [TestFencing], can fail it.
func TestWitness(t *testing.T) {
	t.Parallel()
	one := stay{ID: "one", Takes: map[string]int{"a": 1}, Tokens: map[string]int64{"a": 5}}
	two := stay{ID: "two", Takes: map[string]int{"a": 2}, Tokens: map[string]int64{"a": 6}}
	late := stay{ID: "late", Takes: map[string]int{"b": 1}, Tokens: map[string]int64{"a": 5}}
	for name, c := range map[string]struct {
		capacity int
		steps    func(w witness) error
		want     int
	}{
		"there is room":    {3, func(w witness) error { return errors.Join(w.enter(one), w.enter(two), w.leave(one), w.leave(two)) }, 0},
		"too many":         {2, func(w witness) error { return errors.Join(w.enter(one), w.enter(two), w.leave(one), w.leave(two)) }, 1},
		"one by one":       {2, func(w witness) error { return errors.Join(w.enter(one), w.leave(one), w.enter(two), w.leave(two)) }, 0},
		"a token falls":    {2, func(w witness) error { return errors.Join(w.enter(two), w.leave(two), w.enter(late), w.leave(late)) }, 1},
		"somebody remains": {2, func(w witness) error { return w.enter(one) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := witness{filepath.Join(t.TempDir(), "witness"), c.capacity}
			must(t, c.steps(w))
			got, err := w.violations()
			must(t, err)
			if len(got) != c.want {
				t.Errorf("%d violations, want %d: %q", len(got), c.want, got)
			}
		})
	}
	if err := (witness{filepath.Join(t.TempDir(), "witness"), 1}).leave(one); !errors.Is(err, errNotInside) {
		t.Errorf("a stay that did not begin: %v", err)
	}
}
