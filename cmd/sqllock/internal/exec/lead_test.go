//go:build unix

package exec

import (
	"syscall"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
	"github.com/sqllock/sqllock/sync/leader"
)

// leads is a command that writes "inside" and goes on until a signal ends it.
var leads = []string{"sh", "-c", "echo inside; exec sleep 1000"}

// startLead starts a lead of the role "web".
func startLead(t *testing.T, dsn string, flags []string, command []string) *program.Program {
	t.Helper()
	args := append([]string{"lead"}, flags...)
	return program.Start(t, dsn, append(append(args, "web", "--"), command...)...)
}

// leaderOf returns who leads the role "web".
func leaderOf(t *testing.T, r *sqllock.Repository) leader.Leader {
	t.Helper()
	return check.Value(leader.Current(t.Context(), r, "web"))(t)
}

// TestLeadTakesTurns stops the leader, and then the next, by signals that are forwarded to the command. Each leads
// when the command of the last one has ended, which takes longer than the signal.
func TestLeadTakesTurns(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		r := migrated(t, db)
		slow := []string{"sh", "-c", `trap 'echo stopping; read wait; exit 0' TERM; echo inside; while :; do sleep 60 & wait; done`}
		first := startLead(t, db.DSN, []string{"--client-id", "first", "--ttl", "1h"}, slow)
		first.Stdout.Await("inside")
		second := startLead(t, db.DSN, []string{"--client-id", "second", "--ttl", "1h", "-v"}, leads)
		second.Stderr.Await(`waiting for "web", led by first`)
		first.Signal(syscall.SIGTERM)
		first.Stdout.Await("stopping")
		if now := leaderOf(t, r); now.Client != "first" {
			t.Errorf("%+v leads while the command of the first is stopping", now)
		}
		first.Stdin.Close()
		first.WantCode(0) // that of the command
		second.Stdout.Await("inside")
		if now := leaderOf(t, r); now.Client != "second" {
			t.Errorf("%+v leads", now)
		}
		second.Signal(syscall.SIGINT)
		second.WantCode(128 + int(syscall.SIGINT))
		if now := leaderOf(t, r); now.Holder != "" {
			t.Errorf("%+v leads after the end", now)
		}
	})
}

// TestLeadLosesTheLease deletes the row of the leader, whose command is ended, by SIGKILL in the end. Then it leads
// again. It takes some seconds, because a renewal notices the loss.
func TestLeadLosesTheLease(t *testing.T) {
	program.Slow(t) // a renewal finds out
	t.Parallel()
	db := dbtest.SQLite(t)
	migrated(t, db)
	// real time: a lease that ends early is acquired and lost again, with the same texts
	p := startLead(t, db.DSN, []string{"--ttl", "3s", "--grace", "100ms"}, []string{
		"sh", "-c",
		`trap 'echo asked' TERM; echo inside; while :; do sleep 1000 & wait; done`,
	})
	for range 2 {
		p.Stdout.Await("inside")
		db.DB.MustExecContext(t.Context(), "DELETE FROM INT_LOCK")
		p.Stderr.Await(`the lock "web" is lost: the command gets SIGTERM`)
	}
	p.Stdout.Await("inside")
	p.Signal(syscall.SIGTERM) // is forwarded, and not followed by SIGKILL
	p.Stdout.Await("asked")
	db.DB.MustExecContext(t.Context(), "DELETE FROM INT_LOCK")
	p.WantCode(exit.LockLost)
}
