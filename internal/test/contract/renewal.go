package contract

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// renewalTests are about leases that are renewed many at a time, by themselves.
var renewalTests = []test{
	{"RenewAllRenewsAndTellsWhatBecameOfEach", func(w *world) {
		r, other := w.process(), w.process()
		rows := []sqllock.Ownership{
			{Key: "a", Holder: w.taken(r, "a", ttl)},
			{Key: "gone", Holder: r.NewHolder()},
			{Key: "b", Holder: w.taken(r, "b", ttl)},
			{Key: "taken", Holder: r.NewHolder()},
			{Key: "expired", Holder: w.taken(r, "expired", short)},
		}
		w.taken(other, "taken", ttl)
		w.untilExpired(r, "expired", short)
		outcome, err := r.RenewAll(w.Context(), rows, ttl)
		w.must(err)
		want := []sqllock.Renewal{sqllock.Renewed, sqllock.Lost, sqllock.Renewed, sqllock.Lost, sqllock.Renewed}
		if w.cell.Layout == dialect.Spring7 { // else its time-to-live is that of those who look
			want[4] = sqllock.Lost
		}
		same(w, "outcome", fmt.Sprint(outcome), fmt.Sprint(want))
	}},
	{"RenewAllMatchesKeysAndHolders", func(w *world) {
		r := w.process()
		x, y := w.taken(r, "x", ttl), w.taken(r, "y", ttl)
		w.taken(r, "z", ttl)
		outcome, err := r.RenewAll(w.Context(), []sqllock.Ownership{
			{Key: "x", Holder: x}, {Key: "y", Holder: x}, {Key: "z", Holder: x}, {Key: "y", Holder: y}, {Key: "x", Holder: y},
		}, ttl)
		w.must(err)
		want := []sqllock.Renewal{sqllock.Renewed, sqllock.Lost, sqllock.Lost, sqllock.Renewed, sqllock.Lost}
		same(w, "outcome", fmt.Sprint(outcome), fmt.Sprint(want))
	}},
	{"RenewAllExtends", func(w *world) {
		r := w.process()
		rows := []sqllock.Ownership{{Key: "a", Holder: w.taken(r, "a", ttl)}, {Key: "b", Holder: w.taken(r, "b", ttl)}}
		w.untilLess(r, "a", ttl-short)
		for tries := 0; ; tries++ { // the look may come late
			before, _, err := r.Peek(w.Context(), "b", ttl)
			w.must(err)
			_, err = r.RenewAll(w.Context(), rows, ttl)
			w.must(err)
			after, _, err := r.Peek(w.Context(), "b", ttl)
			w.must(err)
			if after.Left > before.Left {
				return
			}
			if tries == 10 {
				w.Fatalf("left %v, then %v", before.Left, after.Left)
			}
		}
	}},
	{"RenewAllBesideRenewalsOfEachLosesNone", func(w *world) {
		const n, rounds = 10, 10
		r := w.process()
		rows := make([]sqllock.Ownership, n)
		for i := range rows {
			rows[i] = sqllock.Ownership{Key: fmt.Sprint(i), Holder: w.taken(r, fmt.Sprint(i), ttl)}
		}
		var each sync.WaitGroup
		defer each.Wait()
		for _, row := range rows {
			each.Go(func() {
				for range rounds {
					if renewed, err := r.Renew(w.Context(), row.Key, row.Holder, ttl); !renewed || err != nil {
						w.Errorf("%s: %v, %v", row.Key, renewed, err)
					}
				}
			})
		}
		for range rounds {
			outcome, err := r.RenewAll(w.Context(), rows, ttl)
			w.must(err)
			for i, got := range outcome {
				if got == sqllock.Lost {
					w.Errorf("%s: lost", rows[i].Key)
				}
			}
		}
	}},
	{"RenewAllOfNothing", func(w *world) {
		outcome, err := w.process().RenewAll(w.Context(), nil, ttl)
		w.must(err)
		same(w, "outcomes", len(outcome), 0)
	}},
	{"RenewAllOfThousands", func(w *world) {
		const n = 2_000
		r := w.process()
		rows := make([]sqllock.Ownership, n)
		for i := range rows {
			rows[i] = sqllock.Ownership{Key: fmt.Sprint(i), Holder: r.NewHolder()}
		}
		for _, i := range []int{0, n / 2, n - 1} {
			rows[i].Holder = w.taken(r, rows[i].Key, ttl)
		}
		outcome, err := r.RenewAll(w.Context(), rows, ttl)
		w.must(err)
		for i, got := range outcome {
			want := sqllock.Lost
			if i == 0 || i == n/2 || i == n-1 {
				want = sqllock.Renewed
			}
			same(w, rows[i].Key, got, want)
		}
	}},
	{"AutoRenewKeepsLocksAndTheirNeighbours", func(w *world) {
		r := w.autoRenewed(moderate)
		first := w.acquire(w.obtain(r))
		other, err := r.Obtain("other")
		w.must(err)
		second := w.acquire(other)
		_, err = w.lock(moderate).TryLockFor(w.Context(), 3*moderate/2)
		w.is(err, sqllock.ErrNotAcquired)
		for _, lease := range []*sqllock.Lease{first, second} {
			w.must(lease.Context().Err())
			w.must(lease.Unlock(w.Context()))
		}
	}},
	{"EachTimeToLiveIsRenewed", func(w *world) {
		if w.cell.Layout == dialect.Spring6 {
			return // it has but one
		}
		r := w.autoRenewed(ttl)
		long := w.acquire(w.obtain(r))
		other, err := r.Obtain("other")
		w.must(err)
		brief := w.acquire(other.WithTTL(moderate))
		began := brief.Deadline()
		for time.Until(began) > 0 {
			w.pause(short)
		}
		w.must(brief.Context().Err())
		w.must(brief.Unlock(w.Context()))
		w.must(long.Unlock(w.Context()))
	}},
	{"AutoRenewOfOneLock", func(w *world) {
		off, err := w.obtain(w.autoRenewed(moderate)).WithAutoRenew(false).Lock(w.Context())
		w.must(err)
		end := off.Deadline()
		other, err := w.registry(3 * moderate).Obtain("other")
		w.must(err)
		on, err := other.WithAutoRenew(true).Lock(w.Context())
		w.must(err)
		for first := on.Deadline(); on.Deadline().Equal(first); w.pause(short / 10) {
			w.must(on.Context().Err())
		}
		<-off.Context().Done()
		w.is(context.Cause(off.Context()), sqllock.ErrLockLost)
		same(w, "moved", off.Deadline().Sub(end), 0)
		w.must(on.Unlock(w.Context()))
	}},
	{"HeartbeatsTakeNothingBack", func(w *world) {
		if w.cell.Layout == dialect.Spring6 {
			return // one time-to-live for all
		}
		p, beats := w.process(), make(chan error, 100)
		r, err := sqllock.NewRegistry(p, &sqllock.RegistryOptions{
			TTL: moderate, AutoRenew: true, OnRenewal: func(_ int, err error) { beats <- err },
		})
		w.must(err)
		lease := w.acquire(w.obtain(r))
		w.must(lease.RenewFor(w.Context(), ttl))
		for good := 0; good < 2; {
			if <-beats == nil {
				good++
			}
		}
		row, _, err := p.Peek(w.Context(), "k", ttl)
		w.must(err)
		if own := time.Until(lease.Deadline()); row.Left < own || own < moderate {
			w.Fatalf("own %v, row's %v", own, row.Left)
		}
		w.must(lease.Unlock(w.Context()))
		w.must(r.Close(w.Context()))
	}},
	{"TheHeartbeatTellsOfARowThatWasRemovedByForce", func(w *world) {
		lease := w.acquire(w.obtain(w.autoRenewed(moderate)))
		w.deleted(w.process(), "k", lease.Holder(), true)
		unaware := lease.Deadline() // when it would be lost for want of a renewal
		<-lease.Context().Done()
		w.is(context.Cause(lease.Context()), sqllock.ErrLockLost)
		if !time.Now().Before(unaware) {
			w.Fatal("the clock told, not the heartbeat")
		}
		w.is(lease.Unlock(w.Context()), sqllock.ErrLockLost)
	}},
	{"NothingRevivesARowThatIsLeftForAMinimumHold", func(w *world) {
		l, r := w.lock(ttl), w.process()
		lease := w.acquire(l)
		w.must(lease.UnlockAfter(w.Context(), moderate))
		for _, holder := range []string{lease.Holder()} {
			w.renewed(r, holder, ttl, false)
			w.deleted(r, "k", holder, false)
		}
		row, ok, err := r.Peek(w.Context(), "k", ttl)
		w.must(err)
		if !ok || row.Left > moderate {
			w.Fatalf("%+v", row)
		}
	}},
}

// autoRenewed returns the registry of another process, whose leases renew themselves.
func (w *world) autoRenewed(ttl time.Duration) *sqllock.Registry {
	w.Helper()
	r, err := sqllock.NewRegistry(w.process(), &sqllock.RegistryOptions{
		TTL: ttl, IdleBetweenTries: 20 * time.Millisecond, AutoRenew: true,
	})
	w.must(err)
	w.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			w.Errorf("close: %v", err)
		}
	})
	return r
}

// untilLess waits until a row has less than that left.
func (w *world) untilLess(r *sqllock.Repository, key string, left time.Duration) {
	w.Helper()
	for {
		row, ok, err := r.Peek(w.Context(), key, ttl)
		w.must(err)
		same(w, "row", ok, true)
		if row.Left < left {
			return
		}
		w.pause(short / 10)
	}
}

// pause waits between two looks at something that takes its time.
func (w *world) pause(d time.Duration) {
	w.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.Context().Done():
		w.Fatal(w.Context().Err())
	}
}
