package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	scratchPrefix = "sqllock-servers-"
	// newPrefix begins the name until the lock is held. Such directories are not swept.
	newPrefix = "sqllock-new-"
	ownerFile = "owner.lock"
)

// A Scratch is a temporary directory for servers' data. All accounts can pass through it; only
// the caller's account can list it.
type Scratch struct {
	// Dir is its absolute path.
	Dir   string
	owner *flock.Flock
}

// NewScratch creates a Scratch in memory, if there is enough of it: a disk that stalls for
// seconds, as on shared machines, would let leases of tests expire. [ScratchVariable] sets
// another place.
func NewScratch() (*Scratch, error) {
	if parent := os.Getenv(ScratchVariable); parent != "" {
		return newScratch(parent)
	}
	return newScratch(roomiest())
}

// How often Remove tries, and the pause after a try.
const (
	maxRemovals  = 100
	removalPause = 100 * time.Millisecond
)

// NewScratchOnDisk creates a Scratch for servers that must write to a disk.
func NewScratchOnDisk() (*Scratch, error) { return newScratch(os.TempDir()) }

// newScratch also removes directories that killed processes have left. A process locks its
// directory as long as it lives.
func newScratch(parent string) (*Scratch, error) {
	sweepScratches(parent)
	unnamed, err := os.MkdirTemp(parent, newPrefix)
	if err != nil {
		return nil, fmt.Errorf("create a directory for servers: %w", err)
	}
	s := &Scratch{owner: flock.New(filepath.Join(unnamed, ownerFile))}
	s.Dir = filepath.Join(filepath.Dir(unnamed), scratchPrefix+strings.TrimPrefix(filepath.Base(unnamed), newPrefix))
	if err := errors.Join(s.owner.Lock(), os.Chmod(unnamed, 0o711), os.Rename(unnamed, s.Dir)); err != nil {
		return nil, fmt.Errorf("create a directory for servers: %w", errors.Join(err, s.owner.Close(), os.RemoveAll(unnamed)))
	}
	return s, nil
}

// Remove removes the directory and its contents. Its servers must be down.
func (s *Scratch) Remove() error {
	closed := s.owner.Close()
	for try := 1; ; try++ {
		err := os.RemoveAll(s.Dir)
		if err == nil || try == maxRemovals {
			return errors.Join(closed, err)
		}
		time.Sleep(removalPause) // a process of a server that has ended may still write
	}
}

// sweepScratches removes abandoned directories. It ignores errors.
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
