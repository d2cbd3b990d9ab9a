package dbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
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
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 3*time.Minute)
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

// uniqueName returns an identifier that needs no quotes in any database. It contains the
// name of the test, to show which failed test has left it.
func uniqueName(tb testing.TB) string {
	tb.Helper()
	const longest = 40 // of the 63 bytes that PostgreSQL allows
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '_'
		}
	}, tb.Name())
	random := strings.ToLower(rand.Text()[:10])
	return "t_" + random + "_" + readable[:min(len(readable), longest)]
}
