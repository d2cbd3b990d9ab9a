//go:build interop

package spring_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestMain(m *testing.M) {
	if task := os.Getenv(taskVariable); task != "" {
		beProcess(task) // a Go client, not a test
	}
	// Killed clients and ended tests leave connections that the driver would report.
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it refuses nil only
	code := m.Run()
	sayMissing()
	if err := errors.Join(append(stopJVMs(), removeCommand())...); err != nil {
		fmt.Fprintln(os.Stderr, "stop Java:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}
