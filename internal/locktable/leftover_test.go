package locktable

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/test/check"
)

// A late refusal says that its statement has written no row. It says nothing of one that was sent before, without an answer, in
// a batch that has left the row out afterwards.
func TestLeftover_ALateRefusal(t *testing.T) {
	t.Parallel()
	for _, resent := range []bool{false, true} {
		t.Run(fmt.Sprint("sent before: ", resent), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				table := &Table{}
				refuse := make(chan struct{})
				attempts := 0
				acquires := batched[Result]{
					one: func(context.Context, Claim) batch.Outcome[Result] {
						if attempts++; attempts == 1 { // in the batch
							return batch.Outcome[Result]{Err: errRetryAlone, Resent: resent}
						}
						<-refuse
						return batch.Outcome[Result]{}
					},
					policy: acquiring, patience: batchTimeout, onLeave: table.inFlight.add, onLate: table.cleanUpLate,
				}
				acquires.makeBatcher(&table.keepsValues)
				c := Claim{LockKey: "k", Holder: "mine", TTL: time.Hour}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if o := acquires.do(ctx, c); !errors.Is(o.Err, bounded.ErrNoAnswer) || !o.Unknown || o.Resent != resent {
					t.Errorf("outcome %+v", o)
				}
				table.AddLeftover(c) // its caller cleans up
				close(refuse)
				synctest.Wait()
				check.Equal(t, "it is a leftover", table.IsLeftover(Row{LockKey: "k", Holder: "mine"}), resent)
			})
		})
	}
}

// What a deletion finds out decides for how long a claim is a leftover.
func TestLeftover_UntilItIsGone(t *testing.T) {
	t.Parallel()
	const ttl = time.Minute
	for name, test := range map[string]struct {
		deleted bool
		err     error
		lasts   time.Duration
	}{
		"deleted":   {deleted: true},
		"not there": {lasts: ttl},
		"refused":   {err: &Error{Kind: Failed}, lasts: ttl},
		"no answer": {err: &Error{Kind: NoAnswer}, lasts: ttl * 3 / 2},
		"cut short": {err: &Error{Kind: Ended}, lasts: ttl * 3 / 2},
		"pinned":    {err: &Error{Kind: PinnedRow}, lasts: ttl * 3 / 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				table, c := &Table{}, Claim{LockKey: "k", Holder: "mine", TTL: ttl}
				began := time.Now()
				table.AddLeftover(c)
				time.Sleep(ttl / 2)
				table.noteDiscarded(Claim{LockKey: "k", Holder: "mine"}, test.deleted, test.err)
				for table.IsLeftover(Row{LockKey: "k", Holder: "mine"}) {
					time.Sleep(time.Second)
				}
				if got := time.Since(began); test.lasts != 0 && got != test.lasts || test.lasts == 0 && got != ttl/2 {
					t.Errorf("it was a leftover for %v, want %v", got, test.lasts)
				}
			})
		})
	}
}

// An attempt that has met a leftover row is made again if that row has gone meanwhile, whoever has deleted it. A row that
// is met again may have been read on a server that lags behind.
func TestLeftover_IsMetOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ deleted, metAgain, gone, goneSince bool }{
		"deleted":           {deleted: true},
		"deleted by others": {},
		"met again":         {metAgain: true},
		"gone when read":    {gone: true},
		"gone since":        {goneSince: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				table, old := &Table{}, Claim{LockKey: "k", Holder: "old", TTL: time.Hour}
				table.AddLeftover(old)
				attempts := 0
				table.acquires = batched[Result]{
					one: func(context.Context, Claim) batch.Outcome[Result] {
						if attempts++; attempts == 1 && test.gone { // an expired row spares the read
							return batch.Outcome[Result]{Value: Result{Row: Row{LockKey: "k", Holder: "another", Left: -1}}}
						}
						if test.goneSince {
							table.leftovers.Take(old.id())
						}
						if attempts == 1 || test.metAgain {
							return batch.Outcome[Result]{Value: Result{Row: Row{LockKey: "k", Holder: "old", Left: time.Hour}}}
						}
						return batch.Outcome[Result]{Value: Result{Acquired: true}}
					},
					policy: acquiring, patience: batchTimeout,
				}
				table.acquires.makeBatcher(&table.keepsValues)
				table.releases = batched[bool]{
					one:    func(context.Context, Claim) batch.Outcome[bool] { return batch.Outcome[bool]{Value: test.deleted} },
					policy: releasing, patience: batchTimeout,
				}
				table.releases.makeBatcher(&table.keepsValues)
				got, err := table.Acquire(t.Context(), Claim{LockKey: "k", Holder: "new", TTL: time.Minute})
				check.Must(t, err)
				check.Equal(t, "acquired", got.Acquired, !test.metAgain)
				check.Equal(t, "attempts", attempts, 2)
			})
		})
	}
}

// The error of an attempt says that of the attempt, also if it is the deletion of a leftover row that has failed: its caller
// holds nothing.
func TestLeftover_ErrorIsThatOfTheAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		errRefused := errors.New("refused")
		table := &Table{errors: func(error) dialect.Class { return dialect.Unknown }}
		table.AddLeftover(Claim{LockKey: "k", Holder: "old", TTL: time.Hour})
		table.acquires = batched[Result]{
			one: func(context.Context, Claim) batch.Outcome[Result] {
				return batch.Outcome[Result]{Value: Result{Row: Row{LockKey: "k", Holder: "old", Left: time.Hour}}}
			},
			policy: acquiring, patience: batchTimeout,
		}
		table.acquires.makeBatcher(&table.keepsValues)
		table.releases = batched[bool]{
			one: func(context.Context, Claim) batch.Outcome[bool] {
				return batch.Outcome[bool]{Err: errRefused}
			},
			policy: releasing, patience: batchTimeout,
		}
		table.releases.makeBatcher(&table.keepsValues)
		_, err := table.Acquire(t.Context(), Claim{LockKey: "k", Holder: "new", TTL: time.Hour})
		var e *Error
		if !errors.As(err, &e) || e.Op != "acquire" || e.Kind != Failed || !errors.Is(err, errRefused) {
			t.Errorf("%#v", err)
		}
	})
}
