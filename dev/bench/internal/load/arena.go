package load

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// Settings are the durations and sizes of measurements.
type Settings struct {
	Rounds      int
	Measure     time.Duration // the time of a measurement
	Warm        time.Duration // the time of warming up
	Limit       time.Duration // limits calls that may hang
	Connections int           // of each pool, at most
	Waiters     int
}

// Full are the settings of a run whose results are published.
func Full() Settings {
	return Settings{
		Rounds: 5, Measure: 400 * time.Millisecond, Warm: 150 * time.Millisecond, Limit: 3 * time.Second,
		Connections: 64, Waiters: 1000,
	}
}

// Smoke are the settings of a run that checks whether everything works.
func Smoke() Settings {
	return Settings{
		Rounds: 1, Measure: 100 * time.Millisecond, Warm: 20 * time.Millisecond, Limit: time.Second,
		Connections: 32, Waiters: 50,
	}
}

// An Arena has the servers on which contenders are measured.
type Arena struct {
	Settings Settings

	scratch *server.Scratch
	servers map[string]*durable.Server
	dirs    map[string]string
	missing map[string]bool // contenders
}

// NewArena starts the servers that the contenders need, and prepares the contenders.
func NewArena(ctx context.Context, settings Settings, contenders []contender.Contender) (*Arena, error) {
	scratch, err := server.NewScratchOnDisk()
	if err != nil {
		return nil, err
	}
	a := &Arena{
		Settings: settings, scratch: scratch,
		servers: make(map[string]*durable.Server), dirs: make(map[string]string), missing: make(map[string]bool),
	}
	for _, c := range contenders {
		err := a.admit(ctx, c)
		if errors.Is(err, contender.ErrMissing) {
			fmt.Fprintf(os.Stderr, "WITHOUT %s: %v\n", c.Name, err)
			a.missing[c.Name] = true
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", c.Name, err), a.Close())
		}
	}
	return a, nil
}

func (a *Arena) admit(ctx context.Context, c contender.Contender) error {
	if err := a.provide(ctx, c.Database); err != nil || c.Prepare == nil {
		return err
	}
	return c.Prepare(ctx, a.Place(c))
}

// provide starts a server or creates a directory, once.
func (a *Arena) provide(ctx context.Context, kind string) error {
	dir := filepath.Join(a.scratch.Dir, kind)
	if kind == durable.SQLite || kind == durable.Files {
		a.dirs[kind] = dir
		return os.MkdirAll(dir, 0o700)
	}
	if a.servers[kind] != nil {
		return nil
	}
	s, err := durable.Start(ctx, kind, dir)
	if err == nil {
		a.servers[kind] = s
	}
	return err
}

// Dir returns the directory of the servers' data.
func (a *Arena) Dir() string { return a.scratch.Dir }

// Servers returns the running servers.
func (a *Arena) Servers() []*durable.Server {
	return slices.SortedFunc(maps.Values(a.servers), func(x, y *durable.Server) int { return cmp.Compare(x.Kind, y.Kind) })
}

// Place returns the database of a contender.
func (a *Arena) Place(c contender.Contender) contender.Place {
	at := contender.Place{DSN: a.dirs[c.Database], Connections: a.Settings.Connections}
	if s := a.servers[c.Database]; s != nil {
		at.DSN = s.DSN(s.Address())
	}
	return at
}

// Tidy vacuums PostgreSQL's tables, so that no contender is slowed down by the dead rows of the
// previous one.
func (a *Arena) Tidy(ctx context.Context, c contender.Contender) error {
	if c.Database != durable.Postgres {
		return nil
	}
	return a.servers[c.Database].Ask(func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "VACUUM")
		return err
	})
}

// Close stops the servers.
func (a *Arena) Close() error {
	var errs []error
	for _, s := range a.servers {
		errs = append(errs, s.Stop())
	}
	return errors.Join(append(errs, a.scratch.Remove())...)
}

// Has reports whether the arena has all that the load needs for a contender.
func (a *Arena) Has(c contender.Contender, l Load) bool {
	switch {
	case a.missing[c.Name]:
		return false
	case l.Remote:
		return a.servers[c.Database] != nil
	default:
		return a.servers[c.Database] != nil || a.dirs[c.Database] != "" || c.Database == ""
	}
}
