package show

import (
	"bytes"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/listing"
)

// follow reads the table at each interval, and less often if that takes long. It ends with the context, which is no
// error. An error of the first read is returned. Later ones are printed, unless the last one was the same.
func (l *list) follow(cmd *cobra.Command, r *sqllock.Repository) error {
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	write := (&changes{list: l}).write
	if _, isTerminal := format.TerminalWidth(w); isTerminal && !l.asJSON {
		write = func(w io.Writer, locks []listing.Lock) error { return l.redraw(w, locks, r.Waiters(ctx)) }
	}
	failed := ""
	for n := 0; ; n++ {
		began := time.Now()
		locks, err := l.read(ctx, r)
		took := time.Since(began)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user has ended it
		case err != nil && n == 0:
			return err
		case err != nil && exit.Text(err) != failed:
			failed = exit.Text(err)
			cmd.PrintErrf("sqllock: trying again to read the table: %s\n", failed)
		case err == nil:
			failed = ""
			if err := write(w, locks); err != nil {
				return err
			}
		}
		pause := time.NewTimer(max(l.interval, 10*took))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// redraw replaces what is on the terminal by a table.
func (l *list) redraw(w io.Writer, locks []listing.Lock, waiters []sqllock.Waiter) error {
	const cleared = "\x1b[2J\x1b[H"
	width, _ := format.TerminalWidth(w)
	screen, rows := bytes.NewBufferString(cleared), viewsOf(l.wanted(locks))
	addWaiters(waiters, rows)
	if err := writeTable(screen, rows, width); err != nil {
		return err
	}
	_, err := screen.WriteTo(w)
	return err
}

// changes are what has changed between two reads of the table.
type changes struct {
	list *list
	last []listing.Lock
}

// write prints each lock that has changed since the last call: one that is new, has another holder or state, is free
// now, or is wanted now and was not, or the other way round.
func (c *changes) write(w io.Writer, locks []listing.Lock) error {
	for _, v := range c.since(locks) {
		var err error
		if c.list.asJSON {
			err = format.JSONLine(w, v)
		} else {
			err = writeLine(w, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *changes) since(locks []listing.Lock) (changed []rowView) {
	type rowID struct{ region, lockKey string }
	before := make(map[rowID]listing.Lock, len(c.last))
	for _, lock := range c.last {
		before[rowID{lock.Region, lock.LockKey}] = lock
	}
	for _, lock := range locks {
		id := rowID{lock.Region, lock.LockKey}
		old, there := before[id]
		wanted, wasWanted := c.list.wants(lock), there && c.list.wants(old)
		if wanted != wasWanted || wanted && (lock.Row.Holder != old.Row.Holder || lock.State() != old.State()) {
			changed = append(changed, viewOf(lock))
		}
		delete(before, id)
	}
	for _, lock := range c.last {
		if _, gone := before[rowID{lock.Region, lock.LockKey}]; gone && c.list.wants(lock) {
			changed = append(changed, rowView{Key: known(lock.Key), LockKey: lock.LockKey, Region: lock.Region, State: stateFree})
		}
	}
	c.last = locks
	return changed
}
