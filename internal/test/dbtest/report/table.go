package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Print writes the cells as a table with their sum, and the notes below it. Without cells it
// writes nothing.
func Print(w io.Writer, r Report) error {
	if len(r.Cells) == 0 {
		return nil
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Format.Footer = text.FormatDefault
	t.SetColumnConfigs([]table.ColumnConfig{{Name: "reason", WidthMax: 60}})
	t.AppendHeader(table.Row{"server", "version", "driver", "layout", "isolation", "settings", "run", "failed", "skipped", "reason"})
	var sum Cell
	for _, c := range r.Cells {
		t.AppendRow(table.Row{c.Server, c.Version, c.Driver, c.Layout, c.Isolation, c.Settings, c.Run, c.Failed, c.Skipped, c.Reason})
		sum.Run += c.Run
		sum.Failed += c.Failed
		sum.Skipped += c.Skipped
	}
	t.AppendFooter(table.Row{fmt.Sprintf("%d cells", len(r.Cells)), "", "", "", "", "", sum.Run, sum.Failed, sum.Skipped, ""})
	_, err := fmt.Fprintln(w, strings.Join(append([]string{t.Render()}, r.Notes...), "\n"))
	return err
}
