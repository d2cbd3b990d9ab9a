package dbtest

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// OwnServers skips a test that starts servers of its own, unless it was started by withservers:
// plain go test neither installs nor starts anything.
func OwnServers(tb testing.TB) {
	tb.Helper()
	if !server.MayInstall() {
		tb.Skipf("SKIPPED: starts servers of its own, and may install them (%s); run: go run ./internal/test/dbtest/cmd/withservers -- go test ./...",
			server.InstallVariable)
	}
}
