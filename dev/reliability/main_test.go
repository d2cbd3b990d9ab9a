//go:build linux

package reliability

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/machine"
)

func TestMain(m *testing.M) {
	// The driver's log would report each connection that these tests break.
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it refuses nil only
	if workload.BeWorker() {
		return
	}
	child.Be(roles)
	flag.Parse()
	// Trials mostly wait. The small run runs all tests in parallel; for the page, one test
	// runs at a time, with more parallel trials.
	_ = flag.Set("test.parallel", map[bool]string{false: "16", true: "50"}[*full])
	os.Exit(run(m))
}

// run runs the tests on the servers of environment variables, or starts servers.
func run(m *testing.M) int {
	scratch, err := server.NewScratch()
	if err != nil {
		return complain(err)
	}
	defer scratch.Remove() //nolint:errcheck // the next run removes what is left
	for kind, start := range map[string]func(context.Context, string) (*server.Server, error){
		server.Postgres: server.StartPostgres, server.MySQL: server.StartMariaDB,
	} {
		variable := server.KindOf(kind).Variable
		if os.Getenv(variable) != "" {
			continue
		}
		s, err := start(context.Background(), filepath.Join(scratch.Dir, kind))
		if errors.Is(err, server.ErrMissing) || errors.Is(err, errors.ErrUnsupported) {
			_ = complain(err) // dbtest fails or skips the tests
			continue
		}
		if err != nil {
			return complain(err)
		}
		defer s.Stop() //nolint:errcheck // the tests have reported errors
		if err := os.Setenv(variable, s.DSN()); err != nil {
			return complain(err)
		}
	}
	watch = machine.StartWatch()
	code := m.Run()
	watch.Stop()
	if err := goleak.Find(goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait")); err != nil && code == 0 {
		return complain(err) // leaked goroutines
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// watch knows when this process did not run. Other processes and the server may have gone on then.
var watch *machine.Watch

// noAnswer reports whether a statement without a deadline got no answer in time, or not while the lease
// lasted, as on a machine that stands still.
func noAnswer(err error) bool {
	return err != nil && slices.ContainsFunc([]string{"no answer", "not answer", "longer to answer"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}
