//go:build linux

package reliability

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

func TestMain(m *testing.M) {
	// The driver's log would report each connection that these tests break.
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it refuses nil only
	if beChild() {
		return
	}
	flag.Parse()
	// Trials mostly wait. In small all tests run at once; for the page each test has
	// the machine to itself, and more trials at once.
	_ = flag.Set("test.parallel", map[bool]string{false: "16", true: "50"}[*full])
	os.Exit(run(m))
}

// run runs the tests on servers that there are, or on its own.
func run(m *testing.M) int {
	scratch, err := server.NewScratch()
	if err != nil {
		return complain(err)
	}
	defer scratch.Remove() //nolint:errcheck // the next one sweeps
	for kind, start := range map[string]func(context.Context, string) (*server.Server, error){
		server.Postgres: server.StartPostgres, server.MySQL: server.StartMariaDB,
	} {
		variable := server.KindOf(kind).Variable
		if os.Getenv(variable) != "" {
			continue
		}
		s, err := start(context.Background(), filepath.Join(scratch.Dir, kind))
		if errors.Is(err, server.ErrMissing) || errors.Is(err, errors.ErrUnsupported) {
			_ = complain(err) // dbtest decides whether to fail or to skip
			continue
		}
		if err != nil {
			return complain(err)
		}
		defer s.Stop() //nolint:errcheck // the tests have said how it was
		if err := os.Setenv(variable, s.DSN()); err != nil {
			return complain(err)
		}
	}
	code := m.Run()
	if err := goleak.Find(goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait")); err != nil && code == 0 {
		return complain(err) // some of sqllock's, or of ours, never ended
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
