package dbtest_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/report"
)

func TestReportCell(t *testing.T) {
	cell := dbtest.Cell{
		Server: "mysql", Version: "10.11", Driver: "mysql", Layout: "4 columns", Isolation: "serializable",
		Settings: "clientFoundRows=true", Run: 7, Failed: 1, Skipped: 2, Reason: `said "no"`,
	}
	path := filepath.Join(t.TempDir(), "report")
	t.Setenv(report.Variable, "")
	dbtest.ReportCell(t, cell) // has no effect
	t.Setenv(report.Variable, path)
	dbtest.ReportCell(t, cell)
	dbtest.ReportNote(t, "a note")
	got, err := report.Read(path)
	if diff := cmp.Diff(report.Report{Cells: []dbtest.Cell{cell}, Notes: []string{"a note"}}, got); diff != "" || err != nil {
		t.Errorf("error %v, report:\n%s", err, diff)
	}
}
