package contract

import (
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// repositoryTests are about rows: what each verb does to whose.
var repositoryTests = []test{
	{"AcquireThenIsAcquired", func(w *world) {
		r := w.process()
		holder := w.taken(r, "k", ttl)
		w.held(r, "k", holder, ttl, true)
	}},
	{"AcquireOfAHeldRowTellsTheHolder", func(w *world) {
		first, second := w.process(), w.process()
		holder := w.taken(first, "k", ttl)
		got, err := second.Acquire(w.Context(), "k", second.NewHolder(), ttl)
		w.must(err)
		same(w, "acquired", got.Acquired, false)
		same(w, "holder", got.Row.Holder, holder)
		if got.Row.Left <= ttl/2 || got.Row.Left > ttl {
			w.Fatalf("left %v of %v", got.Row.Left, ttl)
		}
	}},
	{"TheSameProcessExcludesItselfToo", func(w *world) {
		r := w.process()
		w.taken(r, "k", ttl)
		got, err := r.Acquire(w.Context(), "k", r.NewHolder(), ttl)
		w.must(err)
		same(w, "acquired", got.Acquired, false)
	}},
	{"ARepeatedAcquireRecognisesItsToken", func(w *world) {
		r := w.process()
		holder := w.taken(r, "k", ttl/2)
		got, err := r.Acquire(w.Context(), "k", holder, ttl)
		w.must(err)
		same(w, "acquired", got.Acquired, true)
		row, _, err := r.Peek(w.Context(), "k", ttl)
		w.must(err)
		if row.Left < ttl*3/4 {
			w.Fatalf("left %v: the second acquire must count", row.Left)
		}
	}},
	{"AnExpiredRowIsTakenOver", func(w *world) {
		first, second := w.process(), w.process()
		old := w.taken(first, "k", moderate)
		w.untilExpired(second, "k", moderate)
		holder := w.taken(second, "k", moderate)
		w.held(first, "k", old, moderate, false)
		w.held(second, "k", holder, moderate, true)
	}},
	{"ARowIsNotTakenOverBeforeItExpires", func(w *world) {
		first, second := w.process(), w.process()
		sent := time.Now()
		w.taken(first, "k", short)
		for {
			got, err := second.Acquire(w.Context(), "k", second.NewHolder(), short)
			w.must(err)
			if got.Acquired {
				break
			}
		}
		// The database's clock on SQLite has milliseconds.
		if after := time.Since(sent); after < short-2*time.Millisecond {
			w.Fatalf("taken over after %v of %v", after, short)
		}
	}},
	{"AFailedAcquireDoesNotTouchTheRow", func(w *world) {
		first, second := w.process(), w.process()
		holder := w.taken(first, "k", ttl)
		before, _, err := first.Peek(w.Context(), "k", ttl)
		w.must(err)
		for range 3 {
			_, err := second.Acquire(w.Context(), "k", second.NewHolder(), 10*ttl)
			w.must(err)
		}
		after, _, err := first.Peek(w.Context(), "k", ttl)
		w.must(err)
		same(w, "holder", after.Holder, holder)
		if after.Left > before.Left || after.Age < before.Age {
			w.Fatalf("row %+v became %+v", before, after)
		}
	}},
	{"DeleteFreesTheRow", func(w *world) {
		r := w.process()
		holder := w.taken(r, "k", ttl)
		w.deleted(r, "k", holder, true)
		w.held(r, "k", holder, ttl, false)
		w.deleted(r, "k", holder, false)
		w.taken(r, "k", ttl)
	}},
	{"DeleteOfAnothersRowDoesNothing", func(w *world) {
		first, second := w.process(), w.process()
		holder := w.taken(first, "k", ttl)
		w.deleted(second, "k", second.NewHolder(), false)
		w.held(first, "k", holder, ttl, true)
	}},
	{"ALateDeleteNeverHitsTheNextAcquisitionOfTheSameProcess", func(w *world) {
		r := w.process()
		old := w.taken(r, "k", ttl)
		w.deleted(r, "k", old, true)
		holder := w.taken(r, "k", ttl)
		w.deleted(r, "k", old, false)
		w.held(r, "k", holder, ttl, true)
	}},
	{"RenewExtends", func(w *world) {
		first, second := w.process(), w.process()
		holder := w.taken(first, "k", ttl)
		var before sqllock.Row
		for before.Left = ttl; before.Left > ttl-2*short; {
			var err error
			before, _, err = second.Peek(w.Context(), "k", ttl)
			w.must(err)
		}
		var after sqllock.Row
		for tries := 0; after.Left <= before.Left; tries++ { // the look may come late
			w.renewed(first, holder, ttl, true)
			var err error
			after, _, err = second.Peek(w.Context(), "k", ttl)
			w.must(err)
			if tries == 10 {
				w.Fatalf("left %v, then %v", before.Left, after.Left)
			}
		}
	}},
	{"RenewMayLastLonger", func(w *world) {
		if w.cell.Layout == dialect.Spring6 {
			return // whoever judges has one time-to-live for all
		}
		first, second := w.process(), w.process()
		holder := w.taken(first, "k", moderate)
		w.renewed(first, holder, ttl, true)
		row, _, err := second.Peek(w.Context(), "k", ttl)
		w.must(err)
		if row.Left < ttl/2 {
			w.Fatalf("left %v", row.Left)
		}
	}},
	{"OneClientIDInTwoProcesses", func(w *world) {
		first, second := w.named("same"), w.named("same")
		holder := w.taken(first, "k", ttl)
		got, err := second.Acquire(w.Context(), "k", second.NewHolder(), ttl)
		w.must(err)
		same(w, "acquired", got.Acquired, false)
		w.deleted(second, "k", second.NewHolder(), false)
		w.renewed(second, second.NewHolder(), ttl, false)
		w.held(first, "k", holder, ttl, true)
	}},
	{"RowsOfOthersAreJudgedAlike", func(w *world) {
		r := w.process()
		lock, err := sqllock.NewRegistry(r, &sqllock.RegistryOptions{TTL: moderate, IdleBetweenTries: 20 * time.Millisecond})
		w.must(err)
		for _, client := range []string{"'3f1e2d4c-5b6a-4978-8a9b-0c1d2e3f4a5b'", "NULL"} {
			w.taken(r, "k", moderate)
			w.exec("UPDATE INT_LOCK SET CLIENT_ID = " + client + " WHERE REGION = '" + w.region + "'")
			_, err = w.obtain(lock).TryLock(w.Context())
			w.is(err, sqllock.ErrNotAcquired)
			lease, err := w.obtain(lock).Lock(w.Context())
			w.must(err)
			w.must(lease.Unlock(w.Context()))
		}
	}},
	{"RenewOfAnExpiredRowFailsThoughNobodyTookIt", func(w *world) {
		r := w.process()
		holder := w.taken(r, "k", short)
		w.untilExpired(r, "k", short)
		w.renewed(r, holder, short, false)
	}},
	{"RenewOfAnothersRowFails", func(w *world) {
		first, second := w.process(), w.process()
		holder := w.taken(first, "k", ttl)
		w.renewed(second, second.NewHolder(), ttl, false)
		w.held(first, "k", holder, ttl, true)
	}},
	{"IsAcquiredIsFalseForOthersAndForAnExpiredRow", func(w *world) {
		first, second := w.process(), w.process()
		holder := w.taken(first, "k", short)
		w.held(second, "k", second.NewHolder(), ttl, false)
		w.untilExpired(first, "k", short)
		w.held(first, "k", holder, short, false)
	}},
	{"DeleteExpiredRemovesExpiredRowsOfItsRegionOnly", func(w *world) {
		r := w.process()
		elsewhere := newWorld(w.T, w.cell).process()
		w.taken(r, "old", short)
		w.taken(r, "older", short)
		holder := w.taken(elsewhere, "old", short)
		w.untilExpired(r, "older", short)
		w.untilExpired(elsewhere, "old", short)
		n, err := r.DeleteExpired(w.Context(), short)
		w.must(err)
		same(w, "deleted", n, 2)
		w.deleted(elsewhere, "old", holder, true)
	}},
	{"DeleteExpiredLeavesLiveRows", func(w *world) {
		r := w.process()
		holder := w.taken(r, "live", ttl)
		n, err := r.DeleteExpired(w.Context(), ttl)
		w.must(err)
		same(w, "deleted", n, 0)
		w.held(r, "live", holder, ttl, true)
	}},
	{"CloseReleasesAllRowsOfThisClientOnly", func(w *world) {
		first, second := w.process(), w.process()
		a, b := w.taken(first, "a", ttl), w.taken(first, "b", ttl)
		c := w.taken(second, "c", ttl)
		w.must(first.Close(w.Context()))
		w.held(first, "a", a, ttl, false)
		w.held(first, "b", b, ttl, false)
		w.held(second, "c", c, ttl, true)
	}},
	{"RegionsAreIndependent", func(w *world) {
		here, there := w.process(), newWorld(w.T, w.cell).process()
		w.taken(here, "k", ttl)
		w.taken(there, "k", ttl)
	}},
	{"KeysAreIndependent", func(w *world) {
		r := w.process()
		for _, key := range []string{"k", "K", "k ", " k", "ключ", "k'; DROP TABLE INT_LOCK; --", strings.Repeat("k", 10_000), "k\x00"} {
			w.taken(r, key, ttl)
		}
	}},
	{"AUUIDIsOneKeyInUpperAndLowerCase", func(w *world) {
		r := w.process()
		w.taken(r, "7B0A2F5C-3C57-4F43-9E7C-0B0F6D1F2A3B", ttl)
		row, ok, err := r.Peek(w.Context(), "7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b", ttl)
		w.must(err)
		same(w, "found", ok, true)
		same(w, "key", row.LockKey, "7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b")
	}},
	{"PlainKeysAreKeptAsTheyAre", func(w *world) {
		r, err := sqllock.NewRepository(w.cell.DB, w.cell.Dialect, &sqllock.RepositoryOptions{
			Region: w.region, Isolation: w.cell.Isolation, Keys: sqllock.PlainKeys,
		})
		w.must(err)
		keys := []string{"k", "K", " k", "ключ", "é", "e\u0301", "ss", "ß", "k'; --", `k\`, "%", "_", strings.Repeat("ж", 36)}
		for _, key := range keys {
			w.taken(r, key, ttl) // none is another's, whatever the collation
			row, ok, err := r.Peek(w.Context(), key, ttl)
			w.must(err)
			same(w, "found", ok, true)
			same(w, "key", row.LockKey, key)
		}
		same(w, "rows", len(w.rows(r)), len(keys))
	}},
	{"ListShowsRows", func(w *world) {
		r := w.process()
		holder := w.taken(r, "k", ttl)
		lockKey, err := r.LockKey("k")
		w.must(err)
		rows := w.rows(r)
		same(w, "rows", len(rows), 1)
		same(w, "key", rows[0].LockKey, lockKey)
		same(w, "holder", rows[0].Holder, holder)
		if row := rows[0]; row.Age < 0 || row.Age > ttl/2 || row.Left < ttl/2 || row.Expired() {
			w.Fatalf("row %+v", row)
		}
	}},
}

// named returns a process whose client id was given.
func (w *world) named(client string) *sqllock.Repository {
	w.Helper()
	r, err := sqllock.NewRepository(w.cell.DB, w.cell.Dialect, &sqllock.RepositoryOptions{
		Region: w.region, Isolation: w.cell.Isolation, ClientID: client,
	})
	w.must(err)
	return r
}

// rows lists the rows of the test's region.
func (w *world) rows(r *sqllock.Repository) []sqllock.Row {
	w.Helper()
	all, err := r.List(w.Context(), ttl)
	w.must(err)
	return slices.DeleteFunc(all, func(row sqllock.Row) bool { return row.Region != w.region })
}

// taken acquires key for a new holder, which it returns.
func (w *world) taken(r *sqllock.Repository, key string, ttl time.Duration) string {
	w.Helper()
	holder := r.NewHolder()
	got, err := r.Acquire(w.Context(), key, holder, ttl)
	w.must(err)
	if !got.Acquired {
		w.Fatalf("%q is held: %+v", key, got.Row)
	}
	return holder
}

// held checks IsAcquired as somebody sees it whose locks last for ttl.
func (w *world) held(r *sqllock.Repository, key, holder string, ttl time.Duration, want bool) {
	w.Helper()
	got, err := r.IsAcquired(w.Context(), key, holder, ttl)
	w.must(err)
	same(w, "held", got, want)
}

func (w *world) deleted(r *sqllock.Repository, key, holder string, want bool) {
	w.Helper()
	got, err := r.Delete(w.Context(), key, holder)
	w.must(err)
	same(w, "deleted", got, want)
}

func (w *world) renewed(r *sqllock.Repository, holder string, ttl time.Duration, want bool) {
	w.Helper()
	got, err := r.Renew(w.Context(), "k", holder, ttl)
	w.must(err)
	same(w, "renewed", got, want)
}

// untilExpired looks at the row of key until it has expired.
func (w *world) untilExpired(r *sqllock.Repository, key string, ttl time.Duration) {
	w.Helper()
	for {
		row, ok, err := r.Peek(w.Context(), key, ttl)
		w.must(err)
		if !ok || row.Expired() {
			return
		}
	}
}
