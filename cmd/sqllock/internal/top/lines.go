package top

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/listing"
)

// printTables prints a table at each interval, until ctx ends, which is no error.
func printTables(ctx context.Context, w io.Writer, locks table, o options) error {
	for n := 1; ; n++ {
		now := locks.read(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the user has ended it
		}
		if now.err != nil {
			return now.err
		}
		if err := printTable(w, now, listing.Order(o.sort)); err != nil || n == o.count {
			return err
		}
		pause := time.NewTimer(now.pause(o.interval))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// printTable prints one table, with the time above it and an empty line after it.
func printTable(w io.Writer, now reading, by listing.Order) error {
	listing.Sort(now.locks, by)
	if _, err := fmt.Fprintf(w, "%s  %s\n", now.at.Format(time.TimeOnly), summary(now)); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "KEY\tREGION\tHOLDER\tAGE\tLEFT\tSTATE\tPROCESS\tWAITING") // Flush returns the error
	for _, l := range now.locks {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Name(), format.Printable(l.Region), format.Printable(l.Row.Holder),
			format.Duration(l.HeldFor()), left(l), l.State(), cmp.Or(format.Printable(l.Process.String()), "-"), cmp.Or(format.Waiters(listing.Total(now.waits.Of(l))), "-"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// summary counts the locks by state. Those of minimum holds are rare, and named only if there are some.
func summary(now reading) string {
	n := make(map[string]int)
	for _, l := range now.locks {
		n[l.State()]++
	}
	text := fmt.Sprintf("%d held, %d expired", n["held"], n["expired"])
	for _, state := range []string{"kept", "finished"} {
		if n[state] > 0 {
			text += fmt.Sprintf(", %d %s", n[state], state)
		}
	}
	waiting := 0
	for _, waiters := range now.waits {
		callers, _ := listing.Total(waiters)
		waiting += callers
	}
	if waiting > 0 {
		text += fmt.Sprintf(", %d waiting for long", waiting)
	}
	if now.more {
		text += ", and more rows"
	}
	return text
}

// left returns the time left, and whether the lease is overdue, or a dash for an expired lock.
func left(l listing.Lock) string {
	if l.Expired() {
		return "-"
	}
	if l.Overdue() {
		return format.Duration(l.Left) + ", overdue"
	}
	return format.Duration(l.Left)
}
