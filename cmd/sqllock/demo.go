package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/migrations"
)

// A demo is one run of the demonstration.
type demo struct {
	dsn         string
	workers     int
	rounds      int
	ttl         time.Duration
	withoutLock bool
}

func newDemoCommand(g *globals) *cobra.Command {
	var d demo
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch processes compete for a lock, and one of them die with it",
		Long: `Watch processes compete for a lock, and one of them die with it.

Several worker processes add one to a shared counter, by reading it, working a
little and writing it back: two at once would lose an update. A lock lets one in at
a time. One worker is killed (SIGKILL) while it holds the lock; the others get it
when its time-to-live has passed. At the end the counter shows whether any update
was lost, and an independent witness (a file lock) whether two were ever in at once.

The lock lives in an SQLite file of its own, or with --dsn in tables of its own in
that database, which are dropped at the end. --without-lock shows what the lock is
good for. The exit code is 1 if an update was lost or two were in at once.`,
		Example: `  sqllock demo
  sqllock demo --without-lock
  sqllock demo --dsn postgres://user@host/database --workers 8`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Not from the environment: a demonstration is no business of the
			// application's database unless somebody says so.
			d.dsn, d.ttl = g.dsn, g.ttl
			if d.workers < 2 || d.workers > 16 || d.rounds < 1 || d.ttl < 500*time.Millisecond {
				return usageError("the demo wants 2 to 16 workers, at least 1 round, and a time-to-live of at least 500ms")
			}
			return d.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&d.workers, "workers", 4, "how many processes compete")
	flags.IntVar(&d.rounds, "rounds", 40, "how often the counter is to be incremented, by all of them together")
	flags.DurationVar(&g.ttl, "ttl", 3*time.Second, "time-to-live of the lock")
	flags.BoolVar(&d.withoutLock, "without-lock", false, "let them all in at once, to see what happens")
	return cmd
}

// run plays the demo and judges it.
func (d *demo) run(ctx context.Context, out io.Writer) (err error) {
	runtime.LockOSThread() // see start
	defer runtime.UnlockOSThread()
	dir, err := os.MkdirTemp("", "sqllock-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stage, err := d.build(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.tearDown(ctx)) }()

	screen := newScreen(out, d)
	screen.introduce(stage.name)
	story, err := d.play(ctx, stage, screen)
	if err != nil {
		return err
	}
	counter, err := stage.readCounter()
	if err != nil {
		return err
	}
	story.end(counter)
	if err := story.summarize(out, d); err != nil {
		return err
	}
	if !story.clean() {
		return &exitError{code: exitFailure}
	}
	return nil
}

// A stage is what the workers share: a lock table, a counter and a witness.
type stage struct {
	dir, dsn, prefix string
	name             string // of the database, for people
	globals          *globals
}

// build makes the lock table, under a name that nobody else uses, and the counter.
func (d *demo) build(ctx context.Context, dir string) (*stage, error) {
	s := &stage{dir: dir, dsn: d.dsn, prefix: "SQLLOCK_DEMO_" + strings.ToUpper(rand.Text()[:8]) + "_"}
	if s.dsn == "" {
		s.dsn = "sqlite:" + filepath.Join(dir, "demo.db")
	}
	s.globals = &globals{dsn: s.dsn, prefix: s.prefix}
	if err := s.writeCounter(0); err != nil {
		return nil, err
	}
	err := s.globals.withDatabase(ctx, mayCreate, func(c *connection) error {
		s.name = c.Name
		if d.dsn == "" {
			s.name = "an SQLite file"
		}
		return migrations.Up(ctx, c.sqlDB(), c.Dialect, &migrations.Options{Prefix: s.prefix})
	})
	return s, err
}

// tearDown drops the tables, also when the demo was interrupted.
func (s *stage) tearDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	return s.globals.withDatabase(ctx, mayExist, func(c *connection) error {
		return migrations.Goto(ctx, c.sqlDB(), c.Dialect, 0, &migrations.Options{Prefix: s.prefix, Force: true})
	})
}

// readCounter and writeCounter are whole each, but nothing keeps two pairs of them
// apart: that is what the lock is for.
func (s *stage) readCounter() (n int, err error) {
	text, err := os.ReadFile(s.counterPath())
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(text), &n)
	return n, err
}

func (s *stage) writeCounter(n int) error {
	draft, err := os.CreateTemp(s.dir, "draft-")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(draft, n)
	if err := errors.Join(err, draft.Close()); err != nil {
		return err
	}
	return os.Rename(draft.Name(), s.counterPath())
}

func (s *stage) counterPath() string { return filepath.Join(s.dir, "counter") }

// stallPath is a file that has the next worker to hold the lock take it away and
// stop. Whoever comes next is the victim: one that was named beforehand might wait
// until all is over, for the lock knows no turns between processes.
func (s *stage) stallPath() string { return filepath.Join(s.dir, "stall") }
