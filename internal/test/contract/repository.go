package contract

import (
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// repositoryTests are about rows: what each method does to the rows of which client.
var repositoryTests = []test{
	inEachCell("AcquireOfAHeldRowReturnsItsHolder", func(f *fixture) {
		first, second := f.process(), f.process()
		holder := f.acquireRow(first, "k", ttl)
		for _, r := range []*sqllock.Repository{second, first} { // another acquisition of the same process is a rival, too
			got := check.Value(r.Acquire(f.Context(), "k", r.NewHolder(), ttl))(f)
			equal(f, "acquired", got.Acquired, false)
			equal(f, "token", got.Token, 0)
			equal(f, "holder", got.Row.Holder, holder)
			if got.Row.Left <= ttl/2 || got.Row.Left > ttl {
				f.Fatalf("left %v of %v", got.Row.Left, ttl)
			}
		}
	}),
	inEachCell("ARepeatedAcquireRecognisesItsHolder", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "k", ttl/2)
		got := check.Value(r.Acquire(f.Context(), "k", holder, ttl))(f)
		equal(f, "acquired", got.Acquired, true)
		row, _ := f.peek(r, "k")
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
		// real time: the test waits for its end, and no holder keeps it
		first, second := f.processWith(short), f.processWith(short)
		sent := time.Now()
		// real time: the test waits for its end, and no holder keeps it
		f.acquireRow(first, "k", short)
		for {
			// real time: the test waits for its end, and no holder keeps it
			got := check.Value(second.Acquire(f.Context(), "k", second.NewHolder(), short))(f)
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
		before, _ := f.peek(first, "k")
		for range 3 {
			f.must(check.ErrorOf(second.Acquire(f.Context(), "k", second.NewHolder(), 10*ttl)))
		}
		after, _ := f.peek(first, "k")
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
	inEachCell("OneClientIDInTwoProcesses", func(f *fixture) {
		same := sqllock.RepositoryOptions{ClientID: "same"}
		first, second := f.repository(same), f.repository(same)
		holder := f.acquireRow(first, "k", ttl)
		got := check.Value(second.Acquire(f.Context(), "k", second.NewHolder(), ttl))(f)
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
			f.is(check.ErrorOf(l.TryLock(f.Context())), sqllock.ErrNotAcquired)
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
		live := f.acquireRow(r, "live", ttl)
		deleted := int64(0)
		for tries := 0; deleted < 2 && tries < 100; tries++ { // it leaves rows that others have locked, as other tests may
			deleted += check.Value(r.DeleteExpired(f.Context()))(f)
		}
		f.checkAcquired(r, "live", live, true)
		equal(f, "deleted", deleted, 2)
		f.checkDeleted(elsewhere, "old", holder, true)
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
	inEachCell("PlainKeysAreKeptAsTheyAre", func(f *fixture) {
		r := f.repository(sqllock.RepositoryOptions{Keys: sqllock.PlainKeys})
		keys := []string{"k", "K", " k", "ключ", "é", "e\u0301", "ss", "ß", "k'; --", `k\`, "%", "_", strings.Repeat("ж", 36)}
		for _, key := range keys {
			f.acquireRow(r, key, ttl) // they are different keys in every collation
			row, ok := f.peek(r, key)
			equal(f, "found", ok, true)
			equal(f, "key", row.LockKey, key)
		}
		equal(f, "rows", len(f.rows(r)), len(keys))
	}),
	inEachCell("ListShowsRows", func(f *fixture) {
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		lockKey := check.Value(r.LockKey("k"))(f)
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
		rows := check.Value(r.ListFirst(f.Context(), 1_000_000))(f)
		for _, row := range rows {
			if row.Region == f.region {
				got = append(got, row.Holder)
			}
		}
		check.Same(f, "holders", got, want)
		rows = check.Value(r.ListFirst(f.Context(), 2))(f)
		equal(f, "rows", len(rows), 2)
	}),
	inEachCell("CountCountsTheRowsOfTheRegion", func(f *fixture) {
		r := f.process()
		count := func(want ...int64) {
			f.Helper()
			n := check.Value(r.Count(f.Context()))(f)
			check.Same(f, "held, kept, finished and expired", []int64{n["held"], n["kept"], n["finished"], n["expired"]}, want)
		}
		count(0, 0, 0, 0)
		f.acquireRow(r, "a", ttl)
		f.acquireRow(r, "b", ttl)
		f.expire()
		count(0, 0, 0, 2)
		f.acquireRow(r, "c", ttl)
		count(1, 0, 0, 2)
		f.must(f.acquire(f.lock(ttl).WithMinHold(ttl)).Unlock(f.Context()))
		count(1, 1, 0, 2)
		f.expire("k")
		count(1, 0, 1, 2)
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
			deleted := check.Value(other.DeleteRow(f.Context(), wrong))(f)
			equal(f, "deleted", deleted, false)
		}
		deleted := check.Value(other.DeleteRow(f.Context(), row))(f)
		equal(f, "deleted", deleted, true)
		f.checkAcquired(r, "k", holder, false)
	}),
}

// rows returns the rows of the test's region.
func (f *fixture) rows(r *sqllock.Repository) []sqllock.Row {
	f.Helper()
	all := check.Value(r.List(f.Context()))(f)
	return slices.DeleteFunc(all, func(row sqllock.Row) bool { return row.Region != f.region })
}

// peek returns the row of key, and whether there is one.
func (f *fixture) peek(r *sqllock.Repository, key string) (row sqllock.Row, ok bool) {
	f.Helper()
	row, ok, err := r.Peek(f.Context(), key)
	f.must(err)
	return row, ok
}

// acquireRow acquires key for a new holder, which it returns.
func (f *fixture) acquireRow(r *sqllock.Repository, key string, ttl time.Duration) string {
	f.Helper()
	holder := r.NewHolder()
	got := check.Value(r.Acquire(f.Context(), key, holder, ttl))(f)
	if !got.Acquired {
		f.Fatalf("%q is held: %+v", key, got.Row)
	}
	return holder
}

// checkAcquired checks the result of IsAcquired.
func (f *fixture) checkAcquired(r *sqllock.Repository, key, holder string, want bool) {
	f.Helper()
	got := check.Value(r.IsAcquired(f.Context(), key, holder))(f)
	equal(f, "held", got, want)
}

func (f *fixture) checkDeleted(r *sqllock.Repository, key, holder string, want bool) {
	f.Helper()
	got := check.Value(r.Delete(f.Context(), key, holder))(f)
	equal(f, "deleted", got, want)
}

func (f *fixture) checkRenewed(r *sqllock.Repository, holder string, ttl time.Duration, want bool) {
	f.Helper()
	got := check.Value(r.Renew(f.Context(), "k", holder, ttl))(f)
	equal(f, "renewed", got, want)
}

// checkProlonged checks that more is left of a row that was made half of ttl older.
func (f *fixture) checkProlonged(r *sqllock.Repository, key string) {
	f.Helper()
	row, _ := f.peek(r, key)
	if row.Left <= ttl/2 {
		f.Fatalf("%s: left %v", key, row.Left)
	}
}
