package contender

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// flock is a lock on a file of this host without a library: the limit for processes of one host.
func flock() []Contender {
	return []Contender{{
		Name:     "flock",
		Library:  "the system's calls",
		Version:  "-",
		Database: durable.Files,
		Settings: "a file for each lock, no lease",
		Loads:    []string{"pairs 1", "hand-off"},
		Open:     func(_ context.Context, at Place) (Session, error) { return flockSession{at.DSN}, nil },
	}}
}

type flockSession struct{ dir string }

// Lock waits in the system, which no context ends.
func (s flockSession) Lock(_ context.Context, key string) (Unlock, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, key+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil { //nolint:gosec // a descriptor is small
		return nil, errors.Join(err, f.Close())
	}
	return func(context.Context) error { return f.Close() }, nil
}

// Connections implements [Session].
func (flockSession) Connections() int { return 0 }

// Close implements [Session].
func (flockSession) Close() error { return nil }
