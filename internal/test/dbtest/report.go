package dbtest

import (
	"os"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/report"
)

// A Cell is what [ReportCell] reports.
type Cell = report.Cell

// ReportCell adds a cell to the table that withservers prints after all tests. Cells of the
// same combination are added up, so each test function can report its own part. Without
// withservers it does nothing.
func ReportCell(tb testing.TB, cell Cell) {
	tb.Helper()
	path := os.Getenv(report.Variable)
	if path == "" {
		return
	}
	if err := report.Append(path, cell); err != nil {
		tb.Errorf("report a cell: %v", err)
	}
}
