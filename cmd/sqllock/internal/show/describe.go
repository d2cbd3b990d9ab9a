package show

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/runs"
	"github.com/sqllock/sqllock/internal/seatkey"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

//go:embed describe.txt
var describeHelp string

// Describe returns the subcommand describe.
func Describe(flags *connect.Flags) *cobra.Command {
	var asJSON bool
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:     "describe KEY",
		Aliases: []string{"show"},
		Short:   "Show all that is known of a lock",
		Long:    describeHelp,
		Example: `  sqllock describe orders/42
  sqllock describe --json render | jq '.permits | length'
  test "$(sqllock describe --json orders/42 | jq -r .state)" = held`,
		Args:              args.Exactly("KEY"),
		ValidArgsFunction: complete.Keys(flags),
		RunE: func(cmd *cobra.Command, given []string) error {
			return flags.WithRepository(cmd.Context(), ttl, func(r *sqllock.Repository) error {
				d, err := describe(cmd.Context(), flags, r, given[0])
				if err != nil {
					return err
				}
				state.RememberKey(given[0])
				if d.Holder != nil || len(d.Permits)+len(d.Readers) > 0 {
					printTTL(cmd, r, ttl)
				}
				if asJSON {
					return format.JSON(cmd.OutOrStdout(), d)
				}
				return d.write(cmd.OutOrStdout())
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	connect.AddTTL(cmd, &ttl)
	return cmd
}

// A description is a lock with the rows of its permits and readers. Its JSON form is documented in docs/cli.md;
// fields are only ever added.
type description struct {
	rowView
	Layout  string     `json:"layout"`
	Permits []seatView `json:"permits"`
	Readers []seatView `json:"readers"`
	Waiting []seatView `json:"waiting"`
	Run     *runView   `json:"run"`
}

// A seatView is the row of a permit or of a reader, or of the process that is the next to get some.
type seatView struct {
	Name string `json:"name"`
	rowView
}

// nameProcess adds the process that holds a row which is too young for Peek to have asked for it.
func nameProcess(ctx context.Context, r *sqllock.Repository, row *sqllock.Row) {
	if row.Holder != "" && row.Process == (sqllock.Process{}) {
		_ = json.Unmarshal([]byte(engine.TableOf(r).Names.ProcessNow(ctx, row.Holder)), &row.Process) // without a name there is the client id
	}
}

// describe reads the rows of a lock by one statement.
func describe(ctx context.Context, flags *connect.Flags, r *sqllock.Repository, key string) (description, error) {
	lockKey, err := r.LockKey(key)
	if err != nil {
		return description{}, err
	}
	keys := slices.Concat([]string{key}, seatKeys(lockKey, seatkey.Permit, semaphore.MaxPermits), seatKeys(lockKey, seatkey.Reader, rwlock.MaxReaders))
	keys = slices.DeleteFunc(keys, func(key string) bool { _, err := r.LockKey(key); return err != nil }) // plain keys may leave no room
	rows, err := r.PeekAll(ctx, keys...)
	if err != nil {
		return description{}, err
	}
	d := description{Layout: r.Layout().String(), Permits: []seatView{}, Readers: []seatView{}, Waiting: []seatView{}}
	shared := d.addSeats(rows, lockKey, keys[1:])
	row, ok := rows[key]
	if shared && row.Released() {
		row, ok = sqllock.Row{}, false // who had the lock before those that share it says nothing of it
	}
	nameProcess(ctx, r, &row)
	if d.rowView = viewOfKey(flags, r, key, row, ok); shared && !ok {
		d.State = stateShared
	}
	own := []rowView{d.rowView}
	addWaiters(r.Waiters(ctx), own)
	d.rowView = own[0]
	if run, found := runs.Of(ctx, r, key); found {
		v := viewOfRun(run)
		d.Run = &v
	}
	if ok {
		d.Pinned = pinOf(ctx, r, key)
	}
	held := []*rowView{&d.rowView}
	for _, list := range [][]seatView{d.Permits, d.Readers} {
		for i := range list {
			held = append(held, &list[i].rowView)
		}
	}
	addTTLs(ctx, r, held...)
	return d, nil
}

// addSeats adds the rows of the keys of permits, readers and turns, and reports whether a permit or a reader has one. A
// row that was released is left out: its seat is free.
func (d *description) addSeats(rows map[string]sqllock.Row, lockKey string, keys []string) (shared bool) {
	for _, seat := range keys {
		row, ok := rows[seat]
		if !ok || row.Released() {
			continue
		}
		name := strings.TrimPrefix(seat, lockKey+" ")
		list := &d.Readers
		kind, number, _ := strings.Cut(name, " ")
		switch {
		case number == seatkey.TurnNumber:
			list = &d.Waiting
		case kind == seatkey.Permit:
			list = &d.Permits
		}
		*list = append(*list, seatView{name, viewOf(listing.Named([]sqllock.Row{row}, nil)[0])})
		shared = shared || number != seatkey.TurnNumber && !row.Expired()
	}
	return shared
}

// seatKeys returns the keys of the turn and of the seats of a lock.
func seatKeys(lockKey, kind string, n int) []string {
	keys := []string{seatkey.Turn(lockKey, kind)}
	for i := range n {
		keys = append(keys, seatkey.Seat(lockKey, kind, i))
	}
	return keys
}

// meanings say more of a state than its name.
var meanings = map[string]string{
	"kept":       "its holder has finished, and it stays taken for the rest of the minimum hold",
	stateExpired: "its holder has not released or renewed it; the next process that tries acquires it",
	"finished":   "its holder has finished, and it is free",
	stateShared:  "by those that have permits, or read",
}

func (d description) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, text string) { _, _ = fmt.Fprintf(t, "%s\t%s\n", name, text) } // Flush returns the error
	line("key", d.keyText())
	line("lock key", format.Printable(d.LockKey))
	line("region", format.Printable(d.Region))
	line("layout", d.Layout)
	line("state", d.State)
	switch more := meanings[d.State]; {
	case d.Pinned != nil:
		line("", d.Pinned.text()+": until that ends, the row cannot be renewed, released or acquired")
	case more != "":
		line("", more)
	}
	if d.Holder != nil {
		line("holder", d.processText())
		line("client id", textOf(d.row.Holder))
		line("acquired", d.ageText())
		line("time left", d.leftText())
		if renewed := d.renewedText(); renewed != "" {
			line("renewed", renewed)
		}
	}
	for i, w := range d.Waiters {
		line([]string{"waited for", ""}[min(i, 1)], w.text())
	}
	for _, list := range []struct {
		name string
		rows []seatView
	}{{"permits", d.Permits}, {"readers", d.Readers}, {"waiting", d.Waiting}} {
		for i, s := range list.rows {
			if i == 0 {
				line(list.name, fmt.Sprint(len(list.rows)))
			}
			line("", fmt.Sprintf("%s: %s by %s, acquired %s, time left %s", s.Name, s.State, s.holderText(), s.ageText(), s.leftText()))
		}
	}
	if d.Run != nil {
		d.Run.write(line)
	}
	return t.Flush()
}
