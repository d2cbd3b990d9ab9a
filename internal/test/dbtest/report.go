package dbtest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// Report adds a line to those that withservers prints after all tests: what was tested on which database. Without
// withservers it does nothing.
func Report(tb testing.TB, format string, values ...any) {
	tb.Helper()
	path := os.Getenv(server.ReportVariable)
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(file, format+"\n", values...) // one write: several processes append at the same time
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		tb.Errorf("report: %v", err)
	}
}
