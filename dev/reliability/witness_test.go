//go:build linux

package reliability

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"

	"github.com/sqllock/sqllock"
)

// A witness sees the tokens of a key's holders, over all processes, and knows nothing of the lock library: it is a file that is
// read and written under a lock of the kernel.
type witness string

// sight is the content of the file.
type sight struct {
	Highest    int64 // of all tokens
	Tokens     int   // how many there were
	Violations []string
}

// add notes a token, which must be higher than those before.
func (s *sight) add(token int64) {
	if token <= s.Highest {
		s.Violations = append(s.Violations, fmt.Sprintf("token %d comes after %d", token, s.Highest))
	}
	s.Highest = max(s.Highest, token)
	s.Tokens++
}

// record notes the token of a lease that lasts. A later holder's comes after it, since that holder waits for the witness.
func (w witness) record(lease *sqllock.Lease) error {
	turn := flock.New(string(w) + ".lock")
	if err := turn.Lock(); err != nil {
		return err
	}
	defer turn.Close()
	seen, err := w.read()
	if err != nil || lease.Context().Err() != nil {
		return err
	}
	seen.add(lease.Token())
	text, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	if err := os.WriteFile(string(w)+".new", text, 0o600); err != nil { // the process may be killed meanwhile
		return err
	}
	return os.Rename(string(w)+".new", string(w))
}

// read reads the file, which is complete at each instant.
func (w witness) read() (seen sight, err error) {
	text, err := os.ReadFile(string(w))
	if errors.Is(err, os.ErrNotExist) {
		return seen, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &seen)
	}
	return seen, err
}

// TestWitness: the witness of [TestFencing] can fail it.
func TestWitness(t *testing.T) {
	t.Parallel()
	db := sqlite.newBase(t)
	registry := db.registry(t, db.db, sqllock.RegistryOptions{TTL: contentionTTL})
	early, late := acquire(t, registry, "early"), acquire(t, registry, "late")
	for name, c := range map[string]struct {
		order []*sqllock.Lease
		want  int
	}{
		"they rise": {[]*sqllock.Lease{early, late}, 0}, "one falls": {[]*sqllock.Lease{late, early}, 1}, "one twice": {[]*sqllock.Lease{late, late}, 1},
	} {
		w := witness(filepath.Join(t.TempDir(), "witness"))
		for _, lease := range c.order {
			must(t, w.record(lease))
		}
		if seen, err := w.read(); err != nil || len(seen.Violations) != c.want || seen.Tokens != 2 {
			t.Errorf("%s: %+v, %v", name, seen, err)
		}
	}
}
