package exec

import (
	"syscall"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
)

// TestExecKilledOnTerminal kills an exec that shares its group with a script, as on a terminal. The command and its
// processes end, and the script goes on.
func TestExecKilledOnTerminal(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	db := dbtest.SQLite(t)
	migrated(t, db)
	p := program.StartAs(t, db.DSN, "in-terminal", "sh", "-c", `sqllock exec --ttl 1h nightly -- sh -c "$0"; echo "after $?"; sleep 1000`,
		"echo inside; echo $PPID; echo $$; sleep 1000; true")
	p.Stdout.Await("inside")
	exec, command := p.Stdout.Number(), p.Stdout.Number()
	var sleep []int
	eventually(t, "the command has a child", func() bool {
		sleep = children(t, command)
		return len(sleep) == 1
	})
	check.Must(t, syscall.Kill(exec, syscall.SIGKILL))
	p.Stdout.Await("after 137")
	eventually(t, "the command has ended", func() bool { return gone(command) })
	eventually(t, "its child has ended", func() bool { return gone(sleep[0]) })
}
