//go:build interop

package spring_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/test/child"
)

func TestMain(m *testing.M) {
	child.Be(roles)
	// Killed clients and ended tests leave broken connections, which the driver would log.
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it fails only for nil
	code := m.Run()
	sayMissing()
	if err := errors.Join(append(stopJVMs(), removeCommand())...); err != nil {
		fmt.Fprintln(os.Stderr, "stop Java:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}
