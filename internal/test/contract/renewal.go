package contract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
)

// renewalTests are about renewing several rows in one statement, and about AutoRenew.
var renewalTests = []test{
	inEachCell("RenewAllReturnsTheOutcomeOfEachRow", func(f *fixture) {
		r, other := f.process(), f.process()
		rows := []owned{
			{Key: "a", Holder: f.acquireRow(r, "a", ttl)},
			{Key: "gone", Holder: r.NewHolder()},
			{Key: "b", Holder: f.acquireRow(r, "b", ttl)},
			{Key: "taken", Holder: r.NewHolder()},
			{Key: "expired", Holder: f.acquireRow(r, "expired", ttl)},
		}
		f.acquireRow(other, "taken", ttl)
		f.expire("expired")
		outcome := check.Value(f.renewAll(rows, ttl))(f)
		want := []locktable.Outcome{locktable.Renewed, locktable.Lost, locktable.Renewed, locktable.Lost, locktable.Lost}
		equal(f, "outcome", fmt.Sprint(outcome), fmt.Sprint(want))
	}),
	inEachCell("RenewAllMatchesKeysAndHolders", func(f *fixture) {
		r := f.process()
		x, y := f.acquireRow(r, "x", ttl), f.acquireRow(r, "y", ttl)
		f.acquireRow(r, "z", ttl)
		outcome := check.Value(f.renewAll([]owned{
			{Key: "x", Holder: x}, {Key: "y", Holder: x}, {Key: "z", Holder: x}, {Key: "y", Holder: y}, {Key: "x", Holder: y},
		}, ttl))(f)
		want := []locktable.Outcome{locktable.Renewed, locktable.Lost, locktable.Lost, locktable.Renewed, locktable.Lost}
		equal(f, "outcome", fmt.Sprint(outcome), fmt.Sprint(want))
		outcome = check.Value(f.renewAll([]owned{{Key: "x", Holder: y}, {Key: "y", Holder: x}}, ttl))(f)
		equal(f, "outcome of each other's", fmt.Sprint(outcome), fmt.Sprint([]locktable.Outcome{locktable.Lost, locktable.Lost}))
	}),
	inEachCell("RenewAllExtends", func(f *fixture) {
		r := f.process()
		rows := []owned{{Key: "a", Holder: f.acquireRow(r, "a", ttl)}, {Key: "b", Holder: f.acquireRow(r, "b", ttl)}}
		f.age(ttl / 2)
		f.must(check.ErrorOf(f.renewAll(rows, ttl)))
		for _, key := range []string{"a", "b"} {
			f.checkProlonged(r, key)
		}
	}),
	inEachCell("RenewAllDuringSingleRenewalsLosesNone", func(f *fixture) {
		const n, rounds = 10, 10
		r := f.process()
		rows := make([]owned, n)
		for i := range rows {
			rows[i] = owned{Key: fmt.Sprint(i), Holder: f.acquireRow(r, fmt.Sprint(i), ttl)}
		}
		var each sync.WaitGroup
		defer each.Wait()
		for _, row := range rows {
			each.Go(func() {
				for n := 0; n < rounds; {
					renewed, err := r.Renew(f.Context(), row.Key, row.Holder, ttl)
					if errors.Is(err, sqllock.ErrPinned) {
						continue // by a renewal of all that takes longer than a second
					} else if n++; !renewed || err != nil {
						f.Errorf("%s: %v, %v", row.Key, renewed, err)
					}
				}
			})
		}
		for range rounds {
			outcome := check.Value(f.renewAll(rows, ttl))(f)
			for i, got := range outcome {
				if got == locktable.Lost {
					f.Errorf("%s: lost", rows[i].Key)
				}
			}
		}
	}),
	inEachCell("RenewAllOfThousandsOfRows", func(f *fixture) {
		n := 2_000
		if testing.Short() {
			n = 200
		}
		r := f.process()
		rows := make([]owned, n)
		for i := range rows {
			rows[i] = owned{Key: fmt.Sprint(i), Holder: r.NewHolder()}
		}
		for _, i := range []int{0, n / 2, n - 1} {
			rows[i].Holder = f.acquireRow(r, rows[i].Key, ttl)
		}
		outcome := check.Value(f.renewAll(rows, ttl))(f)
		for i, got := range outcome {
			want := locktable.Lost
			if i == 0 || i == n/2 || i == n-1 {
				want = locktable.Renewed
			}
			equal(f, rows[i].Key, got, want)
		}
	}),
	inVirtualTime("AutoRenewOfOneLock", func(f *fixture) {
		off := check.Value(f.obtain(f.autoRenewed()).WithAutoRenew(false).Lock(f.Context()))(f)
		end := off.Deadline()
		other := check.Value(f.registry(3 * ttl).Obtain("other"))(f)
		on := check.Value(other.WithAutoRenew(true).Lock(f.Context()))(f)
		for first := on.Deadline(); on.Deadline().Equal(first); f.pause(short / 10) {
			f.must(on.Context().Err())
		}
		<-off.Context().Done()
		f.is(context.Cause(off.Context()), sqllock.ErrLockLost)
		equal(f, "moved", off.Deadline().Sub(end), 0)
		f.must(on.Unlock(f.Context()))
	}),
	inVirtualTime("TheHeartbeatReportsADeletedRow", func(f *fixture) {
		lease := f.acquire(f.obtain(f.autoRenewed()))
		f.checkDeleted(f.process(), "k", lease.Holder(), true)
		deadline := lease.Deadline() // when the lease would end without a renewal
		<-lease.Context().Done()
		f.is(context.Cause(lease.Context()), sqllock.ErrLockLost)
		if !time.Now().Before(deadline) {
			f.Fatal("the lease ended at its deadline, not by the heartbeat")
		}
		f.is(lease.Unlock(f.Context()), sqllock.ErrLockLost)
	}),
	inEachCell("NothingRenewsARowThatIsKeptForAMinimumHold", func(f *fixture) {
		l, r := f.lock(ttl).WithMinHold(ttl), f.process()
		lease := f.acquire(l)
		f.must(lease.Unlock(f.Context()))
		f.checkRenewed(r, lease.Holder(), 10*ttl, false)
		f.checkDeleted(r, "k", lease.Holder(), false)
		row, ok := f.peek(r, "k")
		if !ok || row.Left > ttl {
			f.Fatalf("%+v", row)
		}
	}),
}

// autoRenewed returns the registry of another process with AutoRenew.
func (f *fixture) autoRenewed() *sqllock.Registry {
	f.Helper()
	return f.registryOver(f.process(), sqllock.RegistryOptions{
		TTL: ttl, IdleBetweenTries: f.cell.idle(),
	})
}

// An owned row is the row of a key and the holder that is expected in it.
type owned struct{ Key, Holder string }

// renewAll renews rows by one statement, as AutoRenew does.
func (f *fixture) renewAll(rows []owned, ttl time.Duration) ([]locktable.Outcome, error) {
	f.Helper()
	names := check.Value(sqltext.NamesFor(""))(f)
	table := check.Value(locktable.Open(f.unhurried(), locktable.Config{
		DB: f.cell.DB.DB, Dialect: sqltext.Of(f.cell.Dialect), Names: names, Region: f.region, MultiStatements: f.cell.MultiStatements,
	}))(f)
	claims := make([]locktable.Claim, len(rows))
	for i, row := range rows {
		lockKey := check.Value(sqllock.SpringKeys(row.Key))(f)
		claims[i] = locktable.Claim{LockKey: lockKey, Holder: row.Holder, TTL: ttl}
	}
	return table.Renewals.RenewAll(f.Context(), claims)
}
