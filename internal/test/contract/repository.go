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
	inEachCell("AcquireThenIsAcquired", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		f.checkAcquired(r, "k", holder, true)
	}),
	inEachCell("AcquireOfAHeldRowReturnsItsHolder", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		got, err := second.Acquire(f.Context(), "k", second.NewHolder(), ttl)
		f.must(err)
		equal(f, "acquired", got.Acquired, false)
		equal(f, "holder", got.Row.Holder, holder)
		if got.Row.Left <= ttl/2 || got.Row.Left > ttl {
			f.Fatalf("left %v of %v", got.Row.Left, ttl)
		}
	}),
	inEachCell("TheSameProcessIsExcludedToo", func(f *fixture) {
		r := f.process()
		f.acquireRow(r, "k", ttl)
		got, err := r.Acquire(f.Context(), "k", r.NewHolder(), ttl)
		f.must(err)
		equal(f, "acquired", got.Acquired, false)
	}),
	inEachCell("ARepeatedAcquireRecognisesItsHolder", func(f *fixture) {
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
	}),
	inEachCell("AnExpiredRowIsTakenOver", func(f *fixture) {
		first, second := f.process(), f.process()
		old := f.acquireRow(first, "k", ttl)
		f.pass()
		holder := f.acquireRow(second, "k", ttl)
		f.checkAcquired(first, "k", old, false)
		f.checkAcquired(second, "k", holder, true)
	}),
	inEachCell("ARowIsNotTakenOverBeforeItExpires", func(f *fixture) {
		first, second := f.processWith(short), f.processWith(short)
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
	}),
	inEachCell("AFailedAcquireDoesNotTouchTheRow", func(f *fixture) {
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
	}),
	inEachCell("DeleteFreesTheRow", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		f.checkDeleted(r, "k", holder, true)
		f.checkAcquired(r, "k", holder, false)
		f.checkDeleted(r, "k", holder, false)
		f.acquireRow(r, "k", ttl)
	}),
	inEachCell("DeleteOfAnotherHoldersRowDoesNothing", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		f.checkDeleted(second, "k", second.NewHolder(), false)
		f.checkAcquired(first, "k", holder, true)
	}),
	inEachCell("ALateDeleteDoesNotAffectTheNextAcquisitionOfTheSameProcess", func(f *fixture) {
		r := f.process()
		old := f.acquireRow(r, "k", ttl)
		f.checkDeleted(r, "k", old, true)
		holder := f.acquireRow(r, "k", ttl)
		f.checkDeleted(r, "k", old, false)
		f.checkAcquired(r, "k", holder, true)
	}),
	inEachCell("RenewExtends", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		f.age(ttl / 2)
		f.checkRenewed(first, holder, ttl, true)
		f.checkProlonged(second, "k")
	}),
	inEachCell("RenewWithALongerTTL", func(f *fixture) {
		if f.cell.Layout == dialect.Spring6 {
			return // it has one time-to-live for all rows
		}
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		f.checkRenewed(first, holder, 10*ttl, true)
		row, _, err := second.Peek(f.Context(), "k")
		f.must(err)
		if row.Left < 5*ttl {
			f.Fatalf("left %v", row.Left)
		}
	}),
	inEachCell("OneClientIDInTwoProcesses", func(f *fixture) {
		same := sqllock.RepositoryOptions{ClientID: "same"}
		first, second := f.repository(same), f.repository(same)
		holder := f.acquireRow(first, "k", ttl)
		got, err := second.Acquire(f.Context(), "k", second.NewHolder(), ttl)
		f.must(err)
		equal(f, "acquired", got.Acquired, false)
		f.checkDeleted(second, "k", second.NewHolder(), false)
		f.checkRenewed(second, second.NewHolder(), ttl, false)
		f.checkAcquired(first, "k", holder, true)
	}),
	inEachCell("RowsOfOtherClientsAreTreatedAlike", func(f *fixture) {
		r, l := f.process(), f.lock(ttl)
		for _, client := range []string{"'3f1e2d4c-5b6a-4978-8a9b-0c1d2e3f4a5b'", "NULL"} {
			f.acquireRow(r, "k", ttl)
			f.exec("UPDATE INT_LOCK SET CLIENT_ID = " + client + " WHERE REGION = '" + f.region + "'")
			_, err := l.TryLock(f.Context())
			f.is(err, sqllock.ErrNotAcquired)
			f.pass()
			f.must(f.acquire(l).Unlock(f.Context()))
		}
	}),
	inEachCell("RenewOfAnExpiredRowFailsEvenIfTheRowIsStillThere", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		f.pass()
		f.checkRenewed(r, holder, ttl, false)
	}),
	inEachCell("RenewOfAnotherHoldersRowFails", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		f.checkRenewed(second, second.NewHolder(), ttl, false)
		f.checkAcquired(first, "k", holder, true)
	}),
	inEachCell("IsAcquiredIsFalseForOthersAndForAnExpiredRow", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		f.checkAcquired(second, "k", second.NewHolder(), false)
		f.pass()
		f.checkAcquired(first, "k", holder, false)
	}),
	inEachCell("DeleteExpiredDeletesExpiredRowsOfItsRegionOnly", func(f *fixture) {
		r := f.process()
		other := newFixture(f.TB, f.cell)
		elsewhere := other.process()
		f.acquireRow(r, "old", ttl)
		f.acquireRow(r, "older", ttl)
		holder := f.acquireRow(elsewhere, "old", ttl)
		f.expire()
		other.expire()
		deleted := int64(0)
		for tries := 0; deleted < 2 && tries < 100; tries++ { // it leaves rows that others have locked, as other tests may
			n, err := r.DeleteExpired(f.Context())
			f.must(err)
			deleted += n
		}
		equal(f, "deleted", deleted, 2)
		f.checkDeleted(elsewhere, "old", holder, true)
	}),
	inEachCell("DeleteExpiredLeavesLiveRows", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "live", ttl)
		n, err := r.DeleteExpired(f.Context())
		f.must(err)
		equal(f, "deleted", n, 0)
		f.checkAcquired(r, "live", holder, true)
	}),
	inEachCell("ReleaseAllDeletesTheRowsOfThisClientOnly", func(f *fixture) {
		first, second := f.process(), f.process()
		a, b := f.acquireRow(first, "a", ttl), f.acquireRow(first, "b", ttl)
		c := f.acquireRow(second, "c", ttl)
		f.must(first.ReleaseAll(f.Context()))
		f.checkAcquired(first, "a", a, false)
		f.checkAcquired(first, "b", b, false)
		f.checkAcquired(second, "c", c, true)
	}),
	inEachCell("RegionsAreIndependent", func(f *fixture) {
		here, there := f.process(), newFixture(f.TB, f.cell).process()
		f.acquireRow(here, "k", ttl)
		f.acquireRow(there, "k", ttl)
	}),
	inEachCell("KeysAreIndependent", func(f *fixture) {
		r := f.process()
		for _, key := range []string{"k", "K", "k ", " k", "ключ", "k'; DROP TABLE INT_LOCK; --", strings.Repeat("k", 10_000), "k\x00"} {
			f.acquireRow(r, key, ttl)
		}
	}),
	inEachCell("AUUIDIsOneKeyInUpperAndLowerCase", func(f *fixture) {
		r := f.process()
		f.acquireRow(r, "7B0A2F5C-3C57-4F43-9E7C-0B0F6D1F2A3B", ttl)
		row, ok, err := r.Peek(f.Context(), "7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b")
		f.must(err)
		equal(f, "found", ok, true)
		equal(f, "key", row.LockKey, "7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b")
	}),
	inEachCell("PlainKeysAreKeptAsTheyAre", func(f *fixture) {
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
	}),
	inEachCell("ListShowsRows", func(f *fixture) {
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
	}),
	inEachCell("ListFirstShowsHeldRowsFirst", func(f *fixture) {
		r := f.process()
		var want, got []string
		for _, key := range []string{"a", "b", "expired"} {
			want = append(want, f.acquireRow(r, key, ttl))
		}
		f.age(ttl/2, "a") // the others could be of one age
		f.expire("expired")
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
	}),
	inEachCell("CountCountsTheRowsOfTheRegion", func(f *fixture) {
		r := f.process()
		count := func(want ...int64) {
			f.Helper()
			held, expired, err := r.Count(f.Context())
			f.must(err)
			if got := []int64{held, expired}; !slices.Equal(got, want) {
				f.Fatalf("held and expired: %v, want %v", got, want)
			}
		}
		count(0, 0)
		f.acquireRow(r, "a", ttl)
		f.acquireRow(r, "b", ttl)
		f.expire()
		count(0, 2)
		f.acquireRow(r, "c", ttl)
		count(1, 2)
	}),
	inEachCell("DeleteRowDeletesARowOfAnotherRegion", func(f *fixture) {
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
		f.checkAcquired(r, "k", holder, false)
	}),
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
func (f *fixture) checkAcquired(r *sqllock.Repository, key, holder string, want bool) {
	f.Helper()
	got, err := r.IsAcquired(f.Context(), key, holder)
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

// checkProlonged checks that more is left of a row that was made half of ttl older.
func (f *fixture) checkProlonged(r *sqllock.Repository, key string) {
	f.Helper()
	row, _, err := r.Peek(f.Context(), key)
	f.must(err)
	if row.Left <= ttl/2 {
		f.Fatalf("%s: left %v", key, row.Left)
	}
}
