package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sqllock/sqllock/internal/test/dbtest/report"
)

func TestCellsOfOneCombinationAreAdded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	mysql := report.Cell{Server: "mysql", Version: "10.11", Driver: "mysql", Layout: "4 columns", Isolation: "serializable"}
	other := mysql
	other.Settings = "clientFoundRows=true"
	sqlite := report.Cell{Server: "a-sqlite"}
	for _, cell := range []report.Cell{
		counted(mysql, 3, 1, 0, ""),
		counted(other, 1, 0, 0, ""),
		counted(mysql, 4, 0, 1, "too old"),
		counted(mysql, 0, 0, 1, "too old"),
		counted(mysql, 0, 0, 2, "too slow"),
		counted(sqlite, 5, 0, 0, ""),
	} {
		if err := report.Append(path, cell); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := report.AppendNote(path, "a note"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := report.Read(path)
	want := report.Report{Cells: []report.Cell{
		counted(sqlite, 5, 0, 0, ""),
		counted(mysql, 7, 1, 4, "too old; too slow"),
		counted(other, 1, 0, 0, ""),
	}, Notes: []string{"a note"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, cells:\n%s", err, diff)
	}
}

// counted returns the cell with the given counts.
func counted(combination report.Cell, run, failed, skipped int, reason string) report.Cell {
	combination.Run, combination.Failed, combination.Skipped, combination.Reason = run, failed, skipped, reason
	return combination
}

func TestCellsAppendedConcurrently(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := report.Append(path, report.Cell{Run: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := report.Read(path); err != nil || len(got.Cells) != 1 || got.Cells[0].Run != 50 {
		t.Errorf("cells %v, error %v", got.Cells, err)
	}
}

func TestReadOfBadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	if got, err := report.Read(path); err != nil || len(got.Cells) != 0 {
		t.Errorf("no file: cells %v, error %v", got.Cells, err)
	}
	if err := os.WriteFile(path, []byte("no JSON\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Read(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v does not name the file", err)
	}
}

func TestPrint(t *testing.T) {
	var out strings.Builder
	cells := []report.Cell{
		{Server: "sqlite", Version: "3.54", Run: 7},
		{Server: "mysql", Driver: "mysql", Run: 5, Failed: 1, Skipped: 2, Reason: "too old"},
	}
	if err := report.Print(&out, report.Report{Cells: cells, Notes: []string{"a note", "another one"}}); err != nil {
		t.Fatal(err)
	}
	const want = `
┌─────────┬─────────┬────────┬────────┬───────────┬──────────┬─────┬────────┬─────────┬─────────┐
│ server  │ version │ driver │ layout │ isolation │ settings │ run │ failed │ skipped │ reason  │
├─────────┼─────────┼────────┼────────┼───────────┼──────────┼─────┼────────┼─────────┼─────────┤
│ sqlite  │ 3.54    │        │        │           │          │   7 │      0 │       0 │         │
│ mysql   │         │ mysql  │        │           │          │   5 │      1 │       2 │ too old │
├─────────┼─────────┼────────┼────────┼───────────┼──────────┼─────┼────────┼─────────┼─────────┤
│ 2 cells │         │        │        │           │          │  12 │      1 │       2 │         │
└─────────┴─────────┴────────┴────────┴───────────┴──────────┴─────┴────────┴─────────┴─────────┘
a note
another one
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPrintOfNothing(t *testing.T) {
	var out strings.Builder
	if err := report.Print(&out, report.Report{}); err != nil || out.Len() != 0 {
		t.Errorf("printed %q, error %v", out.String(), err)
	}
}
