package locktable

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
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
				table := unopened(dbcall.Server{})
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
					policy: acquiring, timeout: batchTimeout, onLeave: table.Leftovers.leaveAcquisition,
				}
				acquires.makeBatcher(&table.keepsValues)
				c := Claim{LockKey: "k", Holder: "mine", TTL: time.Hour}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if o := acquires.do(ctx, c); !errors.Is(o.Err, bounded.ErrNoAnswer) || !o.Unknown || o.Resent != resent {
					t.Errorf("outcome %+v", o)
				}
				table.Leftovers.Add(c) // its caller cleans up
				close(refuse)
				synctest.Wait()
				check.Equal(t, "it is a leftover", table.Leftovers.Includes(Row{LockKey: "k", Holder: "mine"}), resent)
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
		"refused":   {err: &dbcall.Error{Kind: dbcall.Failed}, lasts: ttl},
		"no answer": {err: &dbcall.Error{Kind: dbcall.NoAnswer}, lasts: ttl * 3 / 2},
		"cut short": {err: &dbcall.Error{Kind: dbcall.Ended}, lasts: ttl * 3 / 2},
		"pinned":    {err: &dbcall.Error{Kind: dbcall.PinnedRow}, lasts: ttl * 3 / 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				table, c := unopened(dbcall.Server{}), Claim{LockKey: "k", Holder: "mine", TTL: ttl}
				began := time.Now()
				table.Leftovers.Add(c)
				time.Sleep(ttl / 2)
				table.Leftovers.noteDiscarded(Claim{LockKey: "k", Holder: "mine"}, test.deleted, test.err)
				for table.Leftovers.Includes(Row{LockKey: "k", Holder: "mine"}) {
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
				table, old := unopened(dbcall.Server{}), Claim{LockKey: "k", Holder: "old", TTL: time.Hour}
				table.Leftovers.Add(old)
				attempts := 0
				table.Acquisitions.plain = batched[Result]{
					one: func(context.Context, Claim) batch.Outcome[Result] {
						if attempts++; attempts == 1 && test.gone { // an expired row spares the read
							return batch.Outcome[Result]{Value: Result{Row: Row{LockKey: "k", Holder: "another", Left: -1}}}
						}
						if test.goneSince {
							table.Leftovers.claims.Take(old.ID())
						}
						if attempts == 1 || test.metAgain {
							return batch.Outcome[Result]{Value: Result{Row: Row{LockKey: "k", Holder: "old", Left: time.Hour}}}
						}
						return batch.Outcome[Result]{Value: Result{Acquired: true}}
					},
					policy: acquiring, timeout: batchTimeout,
				}
				table.Acquisitions.plain.makeBatcher(&table.keepsValues)
				table.Releases.deletes = batched[bool]{
					one:    func(context.Context, Claim) batch.Outcome[bool] { return batch.Outcome[bool]{Value: test.deleted} },
					policy: releasing, timeout: batchTimeout,
				}
				table.Releases.deletes.makeBatcher(&table.keepsValues)
				got, err := table.Acquisitions.Acquire(t.Context(), Claim{LockKey: "k", Holder: "new", TTL: time.Minute})
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
		table := unopened(dbcall.Server{Classify: func(error) sqltext.Class { return sqltext.Unknown }})
		table.Leftovers.Add(Claim{LockKey: "k", Holder: "old", TTL: time.Hour})
		table.Acquisitions.plain = batched[Result]{
			one: func(context.Context, Claim) batch.Outcome[Result] {
				return batch.Outcome[Result]{Value: Result{Row: Row{LockKey: "k", Holder: "old", Left: time.Hour}}}
			},
			policy: acquiring, timeout: batchTimeout,
		}
		table.Acquisitions.plain.makeBatcher(&table.keepsValues)
		table.Releases.deletes = batched[bool]{
			one: func(context.Context, Claim) batch.Outcome[bool] {
				return batch.Outcome[bool]{Err: errRefused}
			},
			policy: releasing, timeout: batchTimeout,
		}
		table.Releases.deletes.makeBatcher(&table.keepsValues)
		_, err := table.Acquisitions.Acquire(t.Context(), Claim{LockKey: "k", Holder: "new", TTL: time.Hour})
		var e *dbcall.Error
		if !errors.As(err, &e) || e.Op != "acquire" || e.Kind != dbcall.Failed || !errors.Is(err, errRefused) {
			t.Errorf("%#v", err)
		}
	})
}

// A wait is for those that have begun before it: others may begin and end all the time.
func TestInFlight_OthersThatBeginLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f inFlight
		one, two := f.begin(), f.begin()
		waited := make(chan error, 1)
		go func() { waited <- f.wait(t.Context()) }()
		synctest.Wait()
		later := f.begin()
		f.begin()()
		two()
		synctest.Wait()
		if len(waited) != 0 {
			t.Error("did not wait for one of them")
		}
		one()
		check.Must(t, <-waited)
		later()
		check.Must(t, f.wait(t.Context()))
	})
}
