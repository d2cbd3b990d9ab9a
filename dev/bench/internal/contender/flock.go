package contender

import (
	"context"
	"net/url"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// flocks are file locks, which a single host has without a database. They have no
// time-to-live, end with their process, and write nothing.
func flocks() []Contender {
	return []Contender{{
		Name:     "flock",
		Library:  "github.com/gofrs/flock",
		Database: durable.File,
		Settings: "a file for each key; single host, no lease",
		Quick:    true,
		Cannot: map[string]string{
			"wire":    "there is no wire",
			"waiters": "a thousand waiters are a thousand threads that sleep in the kernel",
		},
		Open: func(_ context.Context, at Place) (Session, error) { return flockSession{at.DSN}, nil },
	}}
}

type flockSession struct{ dir string }

// Lock waits in the kernel and cannot be cancelled.
func (s flockSession) Lock(_ context.Context, key string) (Unlock, error) {
	lock := flock.New(filepath.Join(s.dir, url.PathEscape(key)+".lock"))
	if err := lock.Lock(); err != nil {
		return nil, err
	}
	return func(context.Context) error { return lock.Unlock() }, nil
}

func (flockSession) Connections() int { return 0 }

func (flockSession) Close() error { return nil }
