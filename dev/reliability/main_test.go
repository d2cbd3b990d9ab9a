//go:build linux

package reliability

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/internal/test/child"
)

func TestMain(m *testing.M) {
	// The driver's log would report each connection that these tests break.
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it refuses nil only
	child.Be(map[string]child.Role{"migrate": migrate})
	if workload.BeWorker() {
		return
	}
	flag.Parse()
	// Trials mostly wait. The small run runs all tests in parallel; for the page, one test
	// runs at a time, with more parallel trials.
	_ = flag.Set("test.parallel", map[bool]string{false: "16", true: "50"}[*full])
	os.Exit(run(m))
}

func run(m *testing.M) int {
	code := m.Run()
	if err := goleak.Find(goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait")); err != nil && code == 0 { // leaked goroutines
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// noAnswer reports whether a statement without a deadline got no answer in time, or not while the lease
// lasted, as on a machine that stands still.
func noAnswer(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"no answer", "not answer", "longer to answer"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}
