package contract

import (
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// repositoryTests are about rows: what each method does to the rows of which client.
var repositoryTests = []test{
	{"AcquireThenIsAcquired", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		f.checkAcquired(r, "k", holder, ttl, true)
	}},
	{"AcquireOfAHeldRowReturnsItsHolder", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		got, err := second.Acquire(f.Context(), "k", second.NewHolder(), ttl)
		f.must(err)
		equal(f, "acquired", got.Acquired, false)
		equal(f, "holder", got.Row.Holder, holder)
		if got.Row.Left <= ttl/2 || got.Row.Left > ttl {
			f.Fatalf("left %v of %v", got.Row.Left, ttl)
		}
	}},
	{"TheSameProcessIsExcludedToo", func(f *fixture) {
		r := f.process()
		f.acquireRow(r, "k", ttl)
		got, err := r.Acquire(f.Context(), "k", r.NewHolder(), ttl)
		f.must(err)
		equal(f, "acquired", got.Acquired, false)
	}},
	{"ARepeatedAcquireRecognisesItsHolder", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "k", ttl/2)
		got, err := r.Acquire(f.Context(), "k", holder, ttl)
		f.must(err)
		equal(f, "acquired", got.Acquired, true)
		row, _, err := r.Peek(f.Context(), "k")
		f.must(err)
		if row.Left < ttl*3/4 {
			f.Fatalf("left %v: the second acquire must extend the lease", row.Left)
		}
	}},
	{"AnExpiredRowIsTakenOver", func(f *fixture) {
		first, second := f.process(), f.process()
		old := f.acquireRow(first, "k", f.moderate)
		f.untilExpired(second, "k", f.moderate)
		holder := f.acquireRow(second, "k", f.moderate)
		f.checkAcquired(first, "k", old, f.moderate, false)
		f.checkAcquired(second, "k", holder, f.moderate, true)
	}},
	{"ARowIsNotTakenOverBeforeItExpires", func(f *fixture) {
		first, second := f.process(), f.process()
		sent := time.Now()
		f.acquireRow(first, "k", short)
		for {
			got, err := second.Acquire(f.Context(), "k", second.NewHolder(), short)
			f.must(err)
			if got.Acquired {
				break
			}
			f.pause(max(got.Row.Left/4, time.Millisecond)) // more often towards the end
		}
		// SQLite's clock has a resolution of one millisecond.
		if after := time.Since(sent); after < short-2*time.Millisecond {
			f.Fatalf("taken over after %v of %v", after, short)
		}
	}},
	{"AFailedAcquireDoesNotTouchTheRow", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		before, _, err := first.Peek(f.Context(), "k")
		f.must(err)
		for range 3 {
			_, err := second.Acquire(f.Context(), "k", second.NewHolder(), 10*ttl)
			f.must(err)
		}
		after, _, err := first.Peek(f.Context(), "k")
		f.must(err)
		equal(f, "holder", after.Holder, holder)
		if after.Left > before.Left || after.Age < before.Age {
			f.Fatalf("row %+v became %+v", before, after)
		}
	}},
	{"DeleteFreesTheRow", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		f.checkDeleted(r, "k", holder, true)
		f.checkAcquired(r, "k", holder, ttl, false)
		f.checkDeleted(r, "k", holder, false)
		f.acquireRow(r, "k", ttl)
	}},
	{"DeleteOfAnotherHoldersRowDoesNothing", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		f.checkDeleted(second, "k", second.NewHolder(), false)
		f.checkAcquired(first, "k", holder, ttl, true)
	}},
	{"ALateDeleteDoesNotAffectTheNextAcquisitionOfTheSameProcess", func(f *fixture) {
		r := f.process()
		old := f.acquireRow(r, "k", ttl)
		f.checkDeleted(r, "k", old, true)
		holder := f.acquireRow(r, "k", ttl)
		f.checkDeleted(r, "k", old, false)
		f.checkAcquired(r, "k", holder, ttl, true)
	}},
	{"RenewExtends", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		var before sqllock.Row
		for before.Left = ttl; before.Left > ttl-2*short; f.pause(short / 10) {
			var err error
			before, _, err = second.Peek(f.Context(), "k")
			f.must(err)
		}
		var after sqllock.Row
		for tries := 0; after.Left <= before.Left; tries++ { // the read may come late
			f.checkRenewed(first, holder, ttl, true)
			var err error
			after, _, err = second.Peek(f.Context(), "k")
			f.must(err)
			if tries == 10 {
				f.Fatalf("left %v, then %v", before.Left, after.Left)
			}
		}
	}},
	{"RenewWithALongerTTL", func(f *fixture) {
		if f.cell.Layout == dialect.Spring6 {
			return // it has one time-to-live for all rows
		}
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", f.moderate)
		f.checkRenewed(first, holder, ttl, true)
		row, _, err := second.Peek(f.Context(), "k")
		f.must(err)
		if row.Left < ttl/2 {
			f.Fatalf("left %v", row.Left)
		}
	}},
	{"OneClientIDInTwoProcesses", func(f *fixture) {
		same := sqllock.RepositoryOptions{ClientID: "same"}
		first, second := f.repository(same), f.repository(same)
		holder := f.acquireRow(first, "k", ttl)
		got, err := second.Acquire(f.Context(), "k", second.NewHolder(), ttl)
		f.must(err)
		equal(f, "acquired", got.Acquired, false)
		f.checkDeleted(second, "k", second.NewHolder(), false)
		f.checkRenewed(second, second.NewHolder(), ttl, false)
		f.checkAcquired(first, "k", holder, ttl, true)
	}},
	{"RowsOfOtherClientsAreTreatedAlike", func(f *fixture) {
		r := f.processWith(f.moderate)
		lock, err := sqllock.NewRegistry(r, &sqllock.RegistryOptions{TTL: f.moderate, IdleBetweenTries: f.cell.idle()})
		f.must(err)
		for _, client := range []string{"'3f1e2d4c-5b6a-4978-8a9b-0c1d2e3f4a5b'", "NULL"} {
			f.acquireRow(r, "k", f.moderate)
			f.exec("UPDATE INT_LOCK SET CLIENT_ID = " + client + " WHERE REGION = '" + f.region + "'")
			_, err = f.obtain(lock).TryLock(f.Context())
			f.is(err, sqllock.ErrNotAcquired)
			lease, err := f.obtain(lock).Lock(f.Context())
			f.must(err)
			f.must(lease.Unlock(f.Context()))
		}
	}},
	{"RenewOfAnExpiredRowFailsEvenIfTheRowIsStillThere", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "k", short)
		f.untilExpired(r, "k", short)
		f.checkRenewed(r, holder, short, false)
	}},
	{"RenewOfAnotherHoldersRowFails", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		f.checkRenewed(second, second.NewHolder(), ttl, false)
		f.checkAcquired(first, "k", holder, ttl, true)
	}},
	{"IsAcquiredIsFalseForOthersAndForAnExpiredRow", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", short)
		f.checkAcquired(second, "k", second.NewHolder(), ttl, false)
		f.untilExpired(first, "k", short)
		f.checkAcquired(first, "k", holder, short, false)
	}},
	{"DeleteExpiredDeletesExpiredRowsOfItsRegionOnly", func(f *fixture) {
		r := f.process()
		elsewhere := newFixture(f.TB, f.cell, f.patience).process()
		f.acquireRow(r, "old", short)
		f.acquireRow(r, "older", short)
		holder := f.acquireRow(elsewhere, "old", short)
		f.untilExpired(r, "older", short)
		f.untilExpired(elsewhere, "old", short)
		deleted := int64(0)
		for tries := 0; deleted < 2 && tries < 100; tries++ { // it leaves rows that others have locked, as other tests may
			n, err := f.judging(r, short).DeleteExpired(f.Context())
			f.must(err)
			deleted += n
		}
		equal(f, "deleted", deleted, 2)
		f.checkDeleted(elsewhere, "old", holder, true)
	}},
	{"DeleteExpiredLeavesLiveRows", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "live", ttl)
		n, err := r.DeleteExpired(f.Context())
		f.must(err)
		equal(f, "deleted", n, 0)
		f.checkAcquired(r, "live", holder, ttl, true)
	}},
	{"ReleaseAllDeletesTheRowsOfThisClientOnly", func(f *fixture) {
		first, second := f.process(), f.process()
		a, b := f.acquireRow(first, "a", ttl), f.acquireRow(first, "b", ttl)
		c := f.acquireRow(second, "c", ttl)
		f.must(first.ReleaseAll(f.Context()))
		f.checkAcquired(first, "a", a, ttl, false)
		f.checkAcquired(first, "b", b, ttl, false)
		f.checkAcquired(second, "c", c, ttl, true)
	}},
	{"RegionsAreIndependent", func(f *fixture) {
		here, there := f.process(), newFixture(f.TB, f.cell, f.patience).process()
		f.acquireRow(here, "k", ttl)
		f.acquireRow(there, "k", ttl)
	}},
	{"KeysAreIndependent", func(f *fixture) {
		r := f.process()
		for _, key := range []string{"k", "K", "k ", " k", "ключ", "k'; DROP TABLE INT_LOCK; --", strings.Repeat("k", 10_000), "k\x00"} {
			f.acquireRow(r, key, ttl)
		}
	}},
	{"AUUIDIsOneKeyInUpperAndLowerCase", func(f *fixture) {
		r := f.process()
		f.acquireRow(r, "7B0A2F5C-3C57-4F43-9E7C-0B0F6D1F2A3B", ttl)
		row, ok, err := r.Peek(f.Context(), "7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b")
		f.must(err)
		equal(f, "found", ok, true)
		equal(f, "key", row.LockKey, "7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b")
	}},
	{"PlainKeysAreKeptAsTheyAre", func(f *fixture) {
		r := f.repository(sqllock.RepositoryOptions{Keys: sqllock.PlainKeys})
		keys := []string{"k", "K", " k", "ключ", "é", "e\u0301", "ss", "ß", "k'; --", `k\`, "%", "_", strings.Repeat("ж", 36)}
		for _, key := range keys {
			f.acquireRow(r, key, ttl) // they are different keys in every collation
			row, ok, err := r.Peek(f.Context(), key)
			f.must(err)
			equal(f, "found", ok, true)
			equal(f, "key", row.LockKey, key)
		}
		equal(f, "rows", len(f.rows(r)), len(keys))
	}},
	{"ListShowsRows", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		lockKey, err := r.LockKey("k")
		f.must(err)
		rows := f.rows(r)
		equal(f, "rows", len(rows), 1)
		equal(f, "key", rows[0].LockKey, lockKey)
		equal(f, "holder", rows[0].Holder, holder)
		if row := rows[0]; row.Age < 0 || row.Age > ttl/2 || row.Left < ttl/2 || row.Expired() {
			f.Fatalf("row %+v", row)
		}
	}},
	{"ListFirstShowsHeldRowsFirst", func(f *fixture) {
		r := f.process()
		var want, got []string
		if f.cell.Layout == dialect.Spring7 { // a row of the other layout would expire for its reader alone
			want = append(want, f.acquireRow(r, "expired", f.moderate))
			f.untilExpired(r, "expired", f.moderate)
		}
		for i, key := range []string{"a", "b"} {
			want = slices.Insert(want, i, f.acquireRow(r, key, ttl))
			f.pause(10 * time.Millisecond) // or they could be of one age
		}
		rows, err := r.ListFirst(f.Context(), 1_000_000)
		f.must(err)
		for _, row := range rows {
			if row.Region == f.region {
				got = append(got, row.Holder)
			}
		}
		if !slices.Equal(got, want) {
			f.Fatalf("%q, want %q", got, want)
		}
		rows, err = r.ListFirst(f.Context(), 2)
		f.must(err)
		equal(f, "rows", len(rows), 2)
	}},
	{"CountCountsTheRowsOfTheRegion", func(f *fixture) {
		r := f.processWith(short)
		count := func(want ...int64) {
			f.Helper()
			held, expired, err := r.Count(f.Context())
			f.must(err)
			if got := []int64{held, expired}; !slices.Equal(got, want) {
				f.Fatalf("held and expired: %v, want %v", got, want)
			}
		}
		count(0, 0)
		f.acquireRow(r, "a", short)
		f.acquireRow(r, "b", short)
		f.untilExpired(r, "b", short)
		count(0, 2)
		if f.cell.Layout == dialect.Spring7 { // in the other one all rows last equally long
			f.acquireRow(r, "c", ttl)
			count(1, 2)
		}
	}},
	{"DeleteRowDeletesARowOfAnotherRegion", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		other := f.repository(sqllock.RepositoryOptions{Region: f.region + " other"})
		row := f.rows(r)[0]
		for _, wrong := range []sqllock.Row{
			{Region: row.Region, LockKey: row.LockKey, Holder: holder + "0"},
			{Region: row.Region + " other", LockKey: row.LockKey, Holder: holder},
		} {
			deleted, err := other.DeleteRow(f.Context(), wrong)
			f.must(err)
			equal(f, "deleted", deleted, false)
		}
		deleted, err := other.DeleteRow(f.Context(), row)
		f.must(err)
		equal(f, "deleted", deleted, true)
		f.checkAcquired(r, "k", holder, ttl, false)
	}},
}

// rows returns the rows of the test's region.
func (f *fixture) rows(r *sqllock.Repository) []sqllock.Row {
	f.Helper()
	all, err := r.List(f.Context())
	f.must(err)
	return slices.DeleteFunc(all, func(row sqllock.Row) bool { return row.Region != f.region })
}

// acquireRow acquires key for a new holder, which it returns.
func (f *fixture) acquireRow(r *sqllock.Repository, key string, ttl time.Duration) string {
	f.Helper()
	holder := r.NewHolder()
	got, err := r.Acquire(f.Context(), key, holder, ttl)
	f.must(err)
	if !got.Acquired {
		f.Fatalf("%q is held: %+v", key, got.Row)
	}
	return holder
}

// checkAcquired checks the result of IsAcquired.
func (f *fixture) checkAcquired(r *sqllock.Repository, key, holder string, ttl time.Duration, want bool) {
	f.Helper()
	got, err := f.judging(r, ttl).IsAcquired(f.Context(), key, holder)
	f.must(err)
	equal(f, "held", got, want)
}

func (f *fixture) checkDeleted(r *sqllock.Repository, key, holder string, want bool) {
	f.Helper()
	got, err := r.Delete(f.Context(), key, holder)
	f.must(err)
	equal(f, "deleted", got, want)
}

func (f *fixture) checkRenewed(r *sqllock.Repository, holder string, ttl time.Duration, want bool) {
	f.Helper()
	got, err := r.Renew(f.Context(), "k", holder, ttl)
	f.must(err)
	equal(f, "renewed", got, want)
}

// judging returns what judges rows by ttl: r, or in the four-column layout another repository
// of the same region.
func (f *fixture) judging(r *sqllock.Repository, ttl time.Duration) *sqllock.Repository {
	f.Helper()
	if f.cell.Layout == dialect.Spring7 {
		return r
	}
	return f.repository(sqllock.RepositoryOptions{Region: r.Region(), TTL: ttl})
}

// untilExpired waits until the row of key has expired.
func (f *fixture) untilExpired(r *sqllock.Repository, key string, ttl time.Duration) {
	f.Helper()
	r = f.judging(r, ttl)
	for {
		row, ok, err := r.Peek(f.Context(), key)
		f.must(err)
		if !ok || row.Expired() {
			return
		}
		f.pause(max(row.Left, time.Millisecond))
	}
}
