package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

// A stage is what the workers of one demo share: a directory and tables that
// nobody else uses, and that vanish with it.
type stage struct {
	g          globals // with the stage's own DSN and prefix
	directory  string
	connection *connection
	place      string // where the lock lives, for people
}

// setStage makes a stage, or leaves nothing behind.
func (d *demo) setStage(ctx context.Context) (*stage, error) {
	names, err := dialect.NamesFor(d.g.prefix)
	if err != nil {
		return nil, usageError("%w", err)
	}
	s := &stage{g: *d.g}
	s.g.prefix = demoPrefix(names.Schema)
	if s.directory, err = os.MkdirTemp("", "sqllock-demo-"); err != nil {
		return nil, fmt.Errorf("make a directory for the demo: %w", err)
	}
	if err := s.furnish(ctx); err != nil {
		return nil, errors.Join(err, s.strike(ctx))
	}
	return s, nil
}

// furnish makes the counter and the tables.
func (s *stage) furnish(ctx context.Context) (err error) {
	if err := createCounter(s.counter()); err != nil {
		return err
	}
	embedded := s.g.dsn == ""
	if embedded {
		s.g.dsn = sqliteDSN(filepath.Join(s.directory, "locks.db"))
	}
	if s.connection, err = s.g.open(ctx, presence(embedded)); err != nil {
		return err
	}
	c := s.connection
	s.place = c.Name
	if embedded {
		s.place = "a temporary SQLite file"
	}
	return migrationError("create the demo's tables",
		migrations.Up(ctx, c.sqlDB(), c.Dialect, &migrations.Options{Prefix: s.g.prefix}))
}

// demoPrefix is one that no other demo has, let alone an application.
func demoPrefix(schema string) string {
	prefix := "SQLLOCK_DEMO_" + strings.ToUpper(rand.Text()[:8]) + "_"
	if schema != "" {
		prefix = schema + "." + prefix
	}
	return prefix
}

// strike removes everything, also when ctx has ended.
func (s *stage) strike(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var dropped, closed error
	if c := s.connection; c != nil {
		dropped = migrationError("drop the demo's tables, "+s.g.prefix+"…",
			migrations.Goto(ctx, c.sqlDB(), c.Dialect, 0, &migrations.Options{Prefix: s.g.prefix, Force: true}))
		closed = c.Close()
	}
	return errors.Join(dropped, closed, os.RemoveAll(s.directory))
}

func (s *stage) counter() string { return filepath.Join(s.directory, "counter") }
func (s *stage) witness() string { return filepath.Join(s.directory, "witness") }
