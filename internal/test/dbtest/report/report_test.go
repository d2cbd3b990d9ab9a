package report_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest/report"
)

// TestReport: cells that several processes have appended are printed in the order of their combinations, with
// each note once.
func TestReport(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report")
	if got, err := report.Read(path); err != nil || len(got.Cells) != 0 {
		t.Errorf("no file: cells %v, error %v", got.Cells, err)
	}
	var all sync.WaitGroup
	for _, cell := range []report.Cell{
		{Server: "mysql", Driver: "mysql", Run: 5, Failed: 1, Skipped: 2, Reason: "too old"},
		{Server: "mysql", Driver: "mysql", Settings: "x=y", Run: 1},
		{Server: "a-sqlite", Version: "3.54", Run: 7},
	} {
		all.Go(func() {
			if err := report.Append(path, cell); err != nil {
				t.Error(err)
			}
			if err := report.AppendNote(path, "a note"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	read, err := report.Read(path)
	check.Must(t, err)
	var out strings.Builder
	check.Must(t, report.Print(&out, read))
	const want = `
┌──────────┬─────────┬────────┬────────┬───────────┬──────────┬─────┬────────┬─────────┬─────────┐
│ server   │ version │ driver │ layout │ isolation │ settings │ run │ failed │ skipped │ reason  │
├──────────┼─────────┼────────┼────────┼───────────┼──────────┼─────┼────────┼─────────┼─────────┤
│ a-sqlite │ 3.54    │        │        │           │          │   7 │      0 │       0 │         │
│ mysql    │         │ mysql  │        │           │          │   5 │      1 │       2 │ too old │
│ mysql    │         │ mysql  │        │           │ x=y      │   1 │      0 │       0 │         │
├──────────┼─────────┼────────┼────────┼───────────┼──────────┼─────┼────────┼─────────┼─────────┤
│ 3 cells  │         │        │        │           │          │  13 │      1 │       2 │         │
└──────────┴─────────┴────────┴────────┴───────────┴──────────┴─────┴────────┴─────────┴─────────┘
a note
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), out.String()); diff != "" {
		t.Error(diff)
	}
}
