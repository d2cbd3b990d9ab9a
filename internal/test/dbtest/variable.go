package dbtest

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// Missing returns why the tests of a server, one of [server.Kinds], are skipped or fail. It returns "" if the server
// is available.
func Missing(name string) string {
	kind := server.KindOf(name)
	if kind.Variable == "" || os.Getenv(kind.Variable) != "" {
		return ""
	}
	return fmt.Sprintf("no %s (%s): %s is not set", kind.Title, kind.Name, kind.Variable)
}

// DSN returns the DSN of a server, one of [server.Kinds]. If its variable is not set, the test is skipped, or fails if
// the server is required.
func DSN(tb testing.TB, name string) string {
	tb.Helper()
	missing := Missing(name)
	if missing == "" {
		return os.Getenv(server.KindOf(name).Variable)
	}
	required, err := server.Required(name)
	if err != nil {
		tb.Fatal(err)
	}
	const advice = "run: go run ./internal/test/dbtest/cmd/withservers -- go test ./..."
	if required {
		tb.Fatalf("%s, and it must be tested (%s, or CI=true); %s", missing, server.RequireVariable, advice)
	}
	// go test shows the reasons of skips only with -v. This message is always shown, once for each test program.
	once, _ := warned.LoadOrStore(name, new(sync.Once))
	once.(*sync.Once).Do(func() {
		fmt.Fprintf(os.Stderr, "*** TESTS ARE SKIPPED: %s; %s\n", missing, advice)
	})
	tb.Skipf("SKIPPED, NOT TESTED: %s; %s", missing, advice)
	return ""
}

var warned sync.Map // of name to *sync.Once

// All reports whether this is the full run, as make test-all starts it.
func All() bool { return os.Getenv(server.AllVariable) != "" }

// OwnServers skips a test that starts servers of its own, unless it was started by withservers: plain go test neither
// installs nor starts anything.
func OwnServers(tb testing.TB) {
	tb.Helper()
	if !server.MayInstall() {
		tb.Skipf("SKIPPED: starts servers of its own, and may install them (%s); run: go run ./internal/test/dbtest/cmd/withservers -- go test ./...",
			server.InstallVariable)
	}
}
