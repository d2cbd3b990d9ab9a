package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sqllock/sqllock"
)

func newListCommand(g *globals) *cobra.Command {
	var names []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the locks in the table",
		Long: `List the locks in the table: those of all regions, or of one with --region.

A row holds only a hash of its key. list shows the key itself if it has been used
by this user on this host, is given with --name, or stands in the table as it is
(keys in UUID form, and plain keys).

On a terminal the list is a table. Otherwise there is a line a lock, with tabs
between key, lock_key, region, state, holder, age and time left, both in seconds;
what is not known is a dash. --json is for scripts that read JSON.`,
		Example: `  sqllock list
  sqllock list --name orders/42 --name orders/43
  sqllock list --json | jq -r '.[] | select(.state == "held") | .lock_key'`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.withRepository(cmd.Context(), func(_ *connection, r *sqllock.Repository) error {
				rows, err := r.List(cmd.Context(), g.ttl)
				if err != nil {
					return err
				}
				g.noteJudgedBy(cmd, r)
				if cmd.Flags().Changed("region") && g.region != "" {
					rows = onlyRegion(rows, g.region)
				}
				return writeList(cmd.OutOrStdout(), viewsOf(rows, newNameBook(names)), asJSON)
			})
		},
	}
	cmd.Flags().StringArrayVar(&names, "name", nil, "a key that may be in use, to be shown instead of its hash (repeatable)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	g.addTTLFlag(cmd)
	return cmd
}

func onlyRegion(rows []sqllock.Row, region string) (kept []sqllock.Row) {
	for _, row := range rows {
		if row.Region == region {
			kept = append(kept, row)
		}
	}
	return kept
}

// writeList prints rows in the form that fits the reader.
func writeList(w io.Writer, rows []rowView, asJSON bool) error {
	if asJSON {
		return writeJSON(w, rows)
	}
	if width, ok := terminalWidth(w); ok {
		return writeTable(w, rows, width)
	}
	for _, v := range rows {
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.3f\t%.3f\n",
			v.keyText(), printable(v.LockKey), printable(v.Region), v.State, v.holderText(), *v.Age, *v.Left)
		if err != nil {
			return err
		}
	}
	return nil
}

// writeTable prints rows for people. Where the terminal is too narrow for the
// whole, LOCK_KEY gives way: it stands in for keys that are not known, and for
// the others `sqllock key` tells it.
func writeTable(w io.Writer, rows []rowView, width int) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "no locks")
		return err
	}
	text := renderTable(rows, true)
	if lineWidth(text) > width {
		text = renderTable(rows, false)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func renderTable(rows []rowView, lockKeys bool) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	header := table.Row{"Key", "Lock key", "Region", "Holder", "Acquired", "Time left", "State"}
	t.AppendHeader(withoutSecond(header, lockKeys))
	for _, v := range rows {
		key := v.keyText()
		if v.Key == nil && !lockKeys {
			key = printable(v.LockKey)
		}
		row := table.Row{key, printable(v.LockKey), printable(v.Region), v.holderText(), short(v.age) + " ago", v.leftText(), v.State}
		t.AppendRow(withoutSecond(row, lockKeys))
	}
	return t.Render()
}

func withoutSecond(row table.Row, keep bool) table.Row {
	if keep {
		return row
	}
	return append(row[:1:1], row[2:]...)
}

// lineWidth is the number of columns of a rendered table.
func lineWidth(text string) int {
	first, _, _ := strings.Cut(text, "\n")
	return len([]rune(first))
}

// terminalWidth returns the columns of w if it is a terminal.
func terminalWidth(w io.Writer) (width int, ok bool) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return width, true
}
