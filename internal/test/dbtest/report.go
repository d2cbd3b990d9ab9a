package dbtest

import (
	"os"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/report"
)

// A Cell is what [ReportCell] reports.
type Cell = report.Cell

// ReportCell adds a cell to the table that withservers prints when all tests
// have ended. Cells of the same combination are added up, so that each test
// function can report its own part. Without withservers there is no table, and
// nothing happens.
func ReportCell(tb testing.TB, cell Cell) {
	tb.Helper()
	path := os.Getenv(report.Variable)
	if path == "" {
		return
	}
	if err := report.Append(path, cell); err != nil {
		tb.Errorf("report of a cell: %v", err)
	}
}
