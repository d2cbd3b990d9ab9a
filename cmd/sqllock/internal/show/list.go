package show

import (
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/dialect"
)

// List returns the subcommand list.
func List(flags *connect.Flags) *cobra.Command {
	var names []string
	var asJSON bool
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the locks in the table",
		Long: `List the locks in the table: those of all regions, or of one with --region.

A row contains only a hash of its key. list shows the key itself if this user has
used it on this host, if it is given with --name, or if the table contains it
unchanged (keys in UUID form, and plain keys).

On a terminal the list is a table. Otherwise each lock is a line with the columns
key, lock_key, region, state, holder, age and time left (both in seconds), separated
by tabs; an unknown value is a dash. --json prints JSON.`,
		Example: `  sqllock list
  sqllock list --name orders/42 --name orders/43
  sqllock list --json | jq -r '.[] | select(.state == "held") | .lock_key'`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.WithRepository(cmd.Context(), ttl, func(r *sqllock.Repository) error {
				rows, err := r.List(cmd.Context())
				if err != nil {
					return err
				}
				printTTL(cmd, r, ttl)
				if cmd.Flags().Changed("region") && flags.Region != "" {
					rows = onlyRegion(rows, flags.Region)
				}
				return writeList(cmd.OutOrStdout(), viewsOf(rows, state.Keys(names...)), asJSON)
			})
		},
	}
	cmd.Flags().StringArrayVar(&names, "name", nil, "show this key instead of its hash, if it is in the table (repeatable)")
	_ = cmd.RegisterFlagCompletionFunc("name", complete.UsedKeys) // the flag exists
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	connect.AddTTL(cmd, &ttl)
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

// writeList prints rows as JSON, as a table on a terminal, or as lines.
func writeList(w io.Writer, rows []rowView, asJSON bool) error {
	if asJSON {
		return format.JSON(w, rows)
	}
	if width, ok := format.TerminalWidth(w); ok {
		return writeTable(w, rows, width)
	}
	for _, v := range rows {
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.3f\t%.3f\n",
			v.keyText(), format.Printable(v.LockKey), format.Printable(v.Region), v.State, v.holderText(), *v.Age, *v.Left)
		if err != nil {
			return err
		}
	}
	return nil
}

// writeTable prints rows for people. If the terminal is too narrow, the column LOCK_KEY is
// left out: it replaces keys that are not known, and `sqllock key` prints the others.
func writeTable(w io.Writer, rows []rowView, width int) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "no locks")
		return err
	}
	rendered := renderTable(rows, true)
	if text.LongestLineLen(rendered) > width {
		rendered = renderTable(rows, false)
	}
	_, err := fmt.Fprintln(w, rendered)
	return err
}

func renderTable(rows []rowView, lockKeys bool) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.SetColumnConfigs([]table.ColumnConfig{{Name: "Lock key", Hidden: !lockKeys}})
	t.AppendHeader(table.Row{"Key", "Lock key", "Region", "Holder", "Acquired", "Time left", "State"})
	for _, v := range rows {
		key := v.keyText()
		if v.Key == nil && !lockKeys {
			key = format.Printable(v.LockKey)
		}
		t.AppendRow(table.Row{
			key, format.Printable(v.LockKey), format.Printable(v.Region), v.holderText(), format.Duration(v.age) + " ago", v.leftText(), v.State,
		})
	}
	return t.Render()
}

// printTTL prints the time-to-live by which the command has decided what has expired, if
// the table does not contain it and the user has not given one.
func printTTL(cmd *cobra.Command, r *sqllock.Repository, ttl time.Duration) {
	if r.Layout() == dialect.Spring6 && !cmd.Flags().Changed("ttl") {
		cmd.PrintErrf("sqllock: the table has no EXPIRED_AFTER: the time left assumes a time-to-live of %v; use --ttl for another\n", ttl)
	}
}
