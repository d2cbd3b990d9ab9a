package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"runtime"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/fakedb"
)

// TestFrames holds how many functions of this module lie between a call and the driver: on the goroutine of
// the caller and on that of the batch. A developer who steps into a lock passes each of them.
func TestFrames(t *testing.T) {
	for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
		frames := &counted{connector: fakedb.Open().Driver()}
		lock, err := newRegistry(t, sql.OpenDB(frames), isolation).Obtain("orders/42")
		if err != nil {
			t.Fatal(err)
		}
		lease, err := lock.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if deepest := frames.reset(); deepest > 16 {
			t.Errorf("%v, Lock: %d frames\n%s", isolation, deepest, frames.text)
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if deepest := frames.reset(); deepest > 14 {
			t.Errorf("%v, Unlock: %d frames\n%s", isolation, deepest, frames.text)
		}
	}
}

// A counted driver counts, at each statement, the frames of the two goroutines that lead to it.
type counted struct {
	connector driver.Driver
	deepest   int
	text      string
}

func (c *counted) reset() int {
	defer func() { c.deepest = 0 }()
	return c.deepest
}

func (c *counted) Driver() driver.Driver { return c.connector }

func (c *counted) Connect(context.Context) (driver.Conn, error) {
	inner, err := c.connector.Open("")
	return &countedConn{inner, c}, err
}

// note counts the frames of this module's functions, but those of this file.
func (c *counted) note() {
	text := make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	n := 0
	for goroutine := range strings.SplitSeq(string(text), "\n\n") {
		isCaller, isBatch := strings.Contains(goroutine, ".TestFrames("), strings.Contains(goroutine, ".(*counted).note(")
		if !isCaller && !isBatch {
			continue
		}
		for line := range strings.Lines(goroutine) {
			if strings.HasPrefix(line, "github.com/sqllock/sqllock") && !strings.HasPrefix(line, "github.com/sqllock/sqllock/dev/bench.") && !strings.HasPrefix(line, "github.com/sqllock/sqllock/internal/test/") {
				n++
			}
		}
	}
	if n > c.deepest {
		c.deepest, c.text = n, string(text)
	}
}

type countedConn struct {
	driver.Conn
	frames *counted
}

func (c *countedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	c.frames.note()
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

func (c *countedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.frames.note()
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.frames.note()
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}
