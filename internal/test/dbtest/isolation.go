package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"
)

// An isolation is the part of a server that one test uses.
type isolation struct {
	driver, dsn string
	create      string
	drop        []string // run on one connection
	name        string   // its kind and its name, for messages
}

// isolate creates the test's part of the server. It is dropped after the test's pools have
// been closed, or kept if the test fails.
func isolate(tb testing.TB, part isolation) {
	tb.Helper()
	if err := onServer(tb.Context(), part, part.create); err != nil {
		tb.Fatalf("create %s: %v", part.name, err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the failed test's %s stays on %s", part.name, part.dsn)
			return
		}
		// The test's context has ended. The timeout detects a test that has left a
		// transaction open.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 30*time.Second)
		defer cancel()
		if err := onServer(ctx, part, part.drop...); err != nil {
			tb.Errorf("drop %s (does something still use it?): %v", part.name, err)
		}
	})
}

// onServer runs statements on a new connection and closes it: tests that check for leaked
// goroutines would find an open pool.
func onServer(ctx context.Context, part isolation, statements ...string) (err error) {
	db, err := sql.Open(part.driver, part.dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
