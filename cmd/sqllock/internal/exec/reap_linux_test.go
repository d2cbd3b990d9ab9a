package exec

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
)

// TestExecReapsOrphans runs an exec as the first process of a container, which becomes the parent of processes whose
// parents have ended.
func TestExecReapsOrphans(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	migrated(t, db)
	p := program.StartAs(t, db.DSN, "as-reaper", "sqllock", "exec", "--ttl", "1h", "nightly", "--", "sh", "-c",
		"echo inside; for i in 1 2 3; do (sleep 0.1 >/dev/null & echo $!); done; echo all; read wait; exit 4")
	p.Stdout.Await("inside")
	var orphans []int
	for p.Stdout.Lines.Scan() && p.Stdout.Lines.Text() != "all" {
		orphans = append(orphans, check.Value(strconv.Atoi(strings.TrimSpace(p.Stdout.Lines.Text())))(t))
	}
	check.Equal(t, "orphans", len(orphans), 3)
	eventually(t, "no orphan is left", func() bool {
		return !slices.ContainsFunc(processes(t), func(p process.Process) bool { return slices.Contains(orphans, p.PID) })
	})
	p.Stdin.Close()
	p.WantCode(4)
}
