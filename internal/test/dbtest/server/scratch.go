package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

const (
	scratchPrefix = "sqllock-servers-"
	// newPrefix is the name before the lock is held, at which nobody sweeps.
	newPrefix = "sqllock-new-"
	ownerFile = "owner.lock"
)

// A Scratch is a temporary directory for servers' data. Any account can pass
// through it, and none but the caller's can list it.
type Scratch struct {
	// Dir is its absolute path.
	Dir   string
	owner *flock.Flock
}

// NewScratch makes a Scratch in memory, where there is enough of it: a disk that
// stalls for seconds, as those of shared machines do, would end leases that tests
// rely on. [ScratchVariable] names another place.
func NewScratch() (*Scratch, error) {
	if parent := os.Getenv(ScratchVariable); parent != "" {
		return newScratch(parent)
	}
	return newScratch(roomiest())
}

// NewScratchOnDisk makes a Scratch for servers whose way to the disk counts.
func NewScratchOnDisk() (*Scratch, error) { return newScratch(os.TempDir()) }

// newScratch removes those whose owners were killed before they could: each is
// locked by its owner as long as that lives.
func newScratch(parent string) (*Scratch, error) {
	sweepScratches(parent)
	unnamed, err := os.MkdirTemp(parent, newPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a directory for servers: %w", err)
	}
	s := &Scratch{owner: flock.New(filepath.Join(unnamed, ownerFile))}
	s.Dir = filepath.Join(filepath.Dir(unnamed), scratchPrefix+strings.TrimPrefix(filepath.Base(unnamed), newPrefix))
	if err := errors.Join(s.owner.Lock(), os.Chmod(unnamed, 0o711), os.Rename(unnamed, s.Dir)); err != nil {
		return nil, fmt.Errorf("make a directory for servers: %w", errors.Join(err, s.owner.Close(), os.RemoveAll(unnamed)))
	}
	return s, nil
}

// Remove removes the directory and all in it. Servers there must be down.
func (s *Scratch) Remove() error {
	return errors.Join(s.owner.Close(), os.RemoveAll(s.Dir))
}

// sweepScratches is for tidiness only, so what it cannot remove stays.
func sweepScratches(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, scratchPrefix+"*", ownerFile))
	for _, lock := range locks {
		owner := flock.New(lock)
		if owned, err := owner.TryLock(); err == nil && owned {
			_ = os.RemoveAll(filepath.Dir(lock))
		}
		_ = owner.Close()
	}
}
