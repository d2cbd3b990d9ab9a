package dbtest

import (
	"os"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/report"
)

// A Cell is what [ReportCell] reports.
type Cell = report.Cell

// ReportCell adds a cell to the table that withservers prints after all tests. Without
// withservers it does nothing.
func ReportCell(tb testing.TB, cell Cell) {
	tb.Helper()
	toReport(tb, func(path string) error { return report.Append(path, cell) })
}

// ReportNote adds a line to the report, which is printed once, below the table.
func ReportNote(tb testing.TB, note string) {
	tb.Helper()
	toReport(tb, func(path string) error { return report.AppendNote(path, note) })
}

func toReport(tb testing.TB, write func(path string) error) {
	tb.Helper()
	path := os.Getenv(report.Variable)
	if path == "" {
		return
	}
	if err := write(path); err != nil {
		tb.Errorf("report: %v", err)
	}
}
