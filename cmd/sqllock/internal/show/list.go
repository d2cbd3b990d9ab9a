package show

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/listing"
)

// A list is the flags of the subcommand list.
type list struct {
	names     []string
	sort      string
	states    []string
	olderThan time.Duration
	region    string // "" for all
	asJSON    bool
	watch     bool
	interval  time.Duration
	ttl       time.Duration
}

//go:embed list.txt
var listHelp string

// List returns the subcommand list.
func List(flags *connect.Flags) *cobra.Command {
	var l list
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the locks in the table",
		Long:  listHelp,
		Example: `  sqllock list
  sqllock list --sort -age --state held --older-than 10m
  sqllock list --watch --name orders/42 --name orders/43
  sqllock list --json | jq -r '.[] | select(.state == "held") | .lock_key'`,
		Args: args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(); err != nil {
				return err
			}
			if cmd.Flags().Changed("region") {
				l.region = flags.Region
			}
			return flags.WithRepository(cmd.Context(), l.ttl, func(r *sqllock.Repository) error {
				printTTL(cmd, r, l.ttl)
				if l.watch {
					return l.follow(cmd, r)
				}
				locks, err := l.read(cmd.Context(), r)
				if err != nil {
					return err
				}
				printMisdated(cmd, locks)
				rows := viewsOf(l.wanted(locks))
				addPins(cmd.Context(), r, rows)
				addWaiters(r.Waiters(cmd.Context()), rows)
				all := make([]*rowView, len(rows))
				for i := range rows {
					all[i] = &rows[i]
				}
				addTTLs(cmd.Context(), r, all...)
				if !l.asJSON {
					printPins(cmd, rows)
				}
				return writeList(cmd.OutOrStdout(), rows, l.asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&l.names, "name", nil, "show this `KEY` instead of its hash, if it is in the table (repeatable)")
	f.StringVar(&l.sort, "sort", "", "sort by key, region, holder, age or left; a minus before it means the greatest first; by age or left, expired locks are last (default: region and LOCK_KEY)")
	f.StringSliceVar(&l.states, "state", nil, "only locks in this `STATE`: held, kept, expired or finished (repeatable, or with commas)")
	f.DurationVar(&l.olderThan, "older-than", 0, "only locks that were acquired longer ago than this")
	f.BoolVar(&l.watch, "watch", false, "read the table again and again, until Ctrl-C")
	f.DurationVar(&l.interval, "interval", time.Second, "how often --watch reads the table")
	f.BoolVar(&l.asJSON, "json", false, "print JSON")
	connect.AddTTL(cmd, &l.ttl)
	for flag, completion := range map[string]cobra.CompletionFunc{
		"name": complete.UsedKeys, "sort": cobra.FixedCompletions(listing.Columns, cobra.ShellCompDirectiveNoFileComp),
		"state": cobra.FixedCompletions(listing.States, cobra.ShellCompDirectiveNoFileComp),
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, completion) // the flags exist
	}
	return cmd
}

// minInterval keeps the command from being a load.
const minInterval = 100 * time.Millisecond

// check rejects values that make no sense.
func (l *list) check() error {
	for _, state := range l.states {
		if !slices.Contains(listing.States, state) {
			return exit.Usagef("--state %s: it must be held, kept, expired or finished", format.Printable(state))
		}
	}
	switch {
	case l.sort != "" && !listing.Order(l.sort).Valid():
		return exit.Usagef("--sort %s: it must be key, region, holder, age or left, or one of them after a minus", format.Printable(l.sort))
	case l.olderThan < 0:
		return exit.Usagef("--older-than %v is negative", l.olderThan)
	case l.interval < minInterval:
		return exit.Usagef("--interval %v: it must be at least %v", l.interval, minInterval)
	}
	return nil
}

// read returns all locks of the table, in order.
func (l *list) read(ctx context.Context, r *sqllock.Repository) ([]listing.Lock, error) {
	rows, err := r.List(ctx)
	locks := named(rows, l.names...)
	if l.sort != "" {
		listing.Sort(locks, listing.Order(l.sort))
	}
	return locks, err
}

// wants reports whether the flags ask for a lock.
func (l *list) wants(lock listing.Lock) bool {
	return (l.region == "" || lock.Region == l.region) &&
		(l.olderThan == 0 || lock.Age >= l.olderThan) && // an age may be negative: see listing.Ahead
		(len(l.states) == 0 || slices.Contains(l.states, lock.State()))
}

// wanted returns the locks that the flags ask for.
func (l *list) wanted(locks []listing.Lock) (wanted []listing.Lock) {
	for _, lock := range locks {
		if l.wants(lock) {
			wanted = append(wanted, lock)
		}
	}
	return wanted
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
		if err := writeLine(w, v); err != nil {
			return err
		}
	}
	return nil
}

// writeLine prints a row for a script.
func writeLine(w io.Writer, v rowView) error {
	age, left, process := "-", "-", "-"
	if v.Age != nil {
		age, left = fmt.Sprintf("%.3f", *v.Age), fmt.Sprintf("%.3f", *v.Left)
	}
	if v.Process != nil {
		process = v.processText()
	}
	_, err := fmt.Fprintln(w, strings.Join([]string{
		v.keyText(), format.Printable(v.LockKey), format.Printable(v.Region), v.State, textOf(v.row.Holder), age, left, process,
	}, "\t"))
	return err
}

// writeTable prints rows for people. If the terminal is too narrow, the columns LOCK_KEY and CLIENT_ID are
// left out: LOCK_KEY replaces keys that are not known, and `sqllock describe` prints both.
func writeTable(w io.Writer, rows []rowView, width int) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "no locks")
		return err
	}
	var hidden []string
	if !slices.ContainsFunc(rows, func(v rowView) bool { return len(v.Waiters) > 0 }) {
		hidden = append(hidden, waitersColumn)
	}
	if !slices.ContainsFunc(rows, func(v rowView) bool { return v.Process != nil }) {
		hidden = append(hidden, clientColumn) // it is the column HOLDER
	}
	rendered := renderTable(rows, hidden...)
	for _, column := range []string{lockKeyColumn, clientColumn} {
		if text.LongestLineLen(rendered) > width {
			hidden = append(hidden, column)
			rendered = renderTable(rows, hidden...)
		}
	}
	_, err := fmt.Fprintln(w, rendered)
	return err
}

const lockKeyColumn, clientColumn, waitersColumn = "Lock key", "Client ID", "Waiting"

func renderTable(rows []rowView, hidden ...string) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	columns := make([]table.ColumnConfig, len(hidden))
	for i, name := range hidden {
		columns[i] = table.ColumnConfig{Name: name, Hidden: true}
	}
	t.SetColumnConfigs(columns)
	t.AppendHeader(table.Row{"Key", lockKeyColumn, "Region", "Holder", clientColumn, "Acquired", "Time left", "State", waitersColumn})
	for _, v := range rows {
		key := v.nameText()
		if slices.Contains(hidden, lockKeyColumn) {
			key = v.keyOrHash()
		}
		t.AppendRow(table.Row{
			key, format.Printable(v.LockKey), format.Printable(v.Region), v.processText(), textOf(v.row.Holder),
			v.ageText(), v.leftText(), v.State, v.waitersText(),
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

// printPins names the sessions that keep rows from being acquired.
func printPins(cmd *cobra.Command, rows []rowView) {
	for _, v := range rows {
		if v.Pinned != nil {
			cmd.PrintErrf("sqllock: the row of %s is %s: it cannot be acquired before that ends\n", v.keyOrHash(), v.Pinned.text())
		}
	}
}

// printMisdated warns of rows of other programs whose times sqllock would misunderstand.
func printMisdated(cmd *cobra.Command, locks []listing.Lock) {
	rows := make([]sqllock.Row, len(locks))
	for i, lock := range locks {
		rows[i] = lock.Row
	}
	if ahead, by := listing.Ahead(rows); ahead != nil {
		cmd.PrintErrf("sqllock: another program has written a CREATED_DATE in the future, by up to %s: see sqllock doctor\n", format.Duration(by))
	}
	if zoned, by := listing.Zoned(rows); zoned != nil {
		cmd.PrintErrf("sqllock: another program's lock has expired, and would be held if its times were %s off: see sqllock doctor\n", format.Duration(by))
	}
	if listing.Whole(rows) != nil {
		cmd.PrintErrf("sqllock: another program writes times without fractions of a second: see sqllock doctor\n")
	}
}
