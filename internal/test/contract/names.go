package contract

import (
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/runs"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// nameTests are about what other processes are told of a lock that is held for longer than a moment.
var nameTests = []test{
	inEachCell("KeysAndProcessesAreNamed", func(f *fixture) {
		orders := f.naming(sqllock.RegistryOptions{Application: "orders", Version: "1.4.2", NoRenew: true})
		odd, long := "Bestellung/ü \x00 \"\\ 🔒", strings.Repeat("a", 990)+strings.Repeat("🔒", 500)
		lease := check.Value(orders.Lock(f.Context(), odd))(f)
		joint := check.Value(orders.ObtainAll("orders/42", long))(f)
		f.acquire(joint)
		three := check.Value(semaphore.New(orders, "render", 1))(f)
		f.must(check.ErrorOf(three.TryAcquire(f.Context(), 1)))
		book := check.Value(rwlock.New(orders, "book"))(f)
		reader, err := book.TryRLock(f.Context())
		f.must(err)

		other := f.naming(sqllock.RegistryOptions{})
		rows := f.named(other, 5)
		cut := rows[1].Key // after the first letter of the name of the odd one
		want := []string{odd, cut, "orders/42", "permit 0 of render"}
		for i, row := range rows {
			equal(f, "process", row.Process.String(), rows[0].Process.String())
			if i == 4 {
				equal(f, "a reader", strings.HasPrefix(row.Key, "reader ") && strings.HasSuffix(row.Key, " of book"), true)
			} else {
				equal(f, "key", row.Key, want[i])
			}
		}
		if start, found := strings.CutSuffix(cut, "..."); !found || len(start) < 900 || !strings.HasPrefix(long, start) {
			f.Fatalf("a long key: %q", cut)
		}
		process := rows[0].Process
		if process.Host == "" || process.PID == 0 || process.Application != "orders" || process.Version != "1.4.2" {
			f.Fatalf("process %+v", process)
		}

		var held *sqllock.HeldError
		for held == nil || held.Process == (sqllock.Process{}) { // a database that is busy may not say it at once
			_, err = other.TryLock(f.Context(), odd)
			equal(f, "a HeldError", errors.As(err, &held), true)
			f.pause(10 * time.Millisecond)
		}
		if held.Process != process || held.Holder != lease.Holder() ||
			!strings.Contains(err.Error(), "is held by orders 1.4.2 on "+process.Host+", pid ") {
			f.Fatalf("%v: %+v", err, held)
		}
		for name, peek := range map[string]func() (sqllock.Row, error){
			"Peek": func() (sqllock.Row, error) {
				row, _, err := other.Repository().Peek(f.Context(), odd)
				return row, err
			},
			"PeekAll": func() (sqllock.Row, error) {
				all, err := other.Repository().PeekAll(f.Context(), odd)
				return all[odd], err
			},
		} {
			row := check.Value(peek())(f)
			if row.Key != odd || row.Process != process {
				f.Fatalf("%s: %+v", name, row)
			}
		}
		f.must(reader.Unlock(f.Context()))
		f.must(lease.Unlock(f.Context()))
	}),
	// Over four columns CREATED_DATE of such a row lies ahead.
	inVirtualTime("TheRowOfAMinimumHoldHasItsProcess", func(f *fixture) {
		lease := f.acquire(f.obtainKey(f.naming(sqllock.RegistryOptions{Application: "orders"}), "nightly").WithMinHold(20 * ttl))
		f.must(lease.Unlock(f.Context()))
		time.Sleep(time.Second)
		var held *sqllock.HeldError
		_, err := f.naming(sqllock.RegistryOptions{}).TryLock(f.Context(), "nightly")
		equal(f, "a HeldError", errors.As(err, &held), true)
		equal(f, "application", held.Process.Application, "orders")
	}),
	inVirtualTime("AShortHoldAndOneWithoutNamesWriteNone", func(f *fixture) {
		r, silent := f.naming(sqllock.RegistryOptions{}), f.naming(sqllock.RegistryOptions{DisableNames: true, NoRenew: true})
		short := f.acquire(f.obtainKey(r, "short"))
		time.Sleep(900 * time.Millisecond) // a name is for a second or more
		f.must(short.Unlock(f.Context()))
		f.acquire(f.obtainKey(silent, "secret"))
		f.acquire(f.obtainKey(r, "long"))
		f.named(r, 1)
		for _, key := range []string{"short", "secret"} {
			lockKey := check.Value(r.Repository().LockKey(key))(f)
			equal(f, "names of "+key, f.count("ID = 'key:"+lockKey+"'"), 0)
		}
		equal(f, "processes", f.count("ID LIKE 'process:%'"), 1)
	}),
	once("ALongApplicationIsCutAndHostAndPIDStay", func(f *fixture) {
		other := f.process()
		for _, letter := range []string{"a", "🔒", "\x01", `"`} {
			long := strings.Repeat(letter, 300)
			r := f.naming(sqllock.RegistryOptions{Application: long, Version: long, NoRenew: true})
			lease := f.acquire(f.obtainKey(r, "k"))
			f.named(r, 1)
			var process sqllock.Process
			for process.PID == 0 { // a database that is busy may not say it at once
				row, _, err := other.Peek(f.Context(), "k")
				f.must(err)
				process = row.Process
				f.pause(10 * time.Millisecond)
			}
			host := check.Value(os.Hostname())(f)
			if process.Host != host || process.PID != os.Getpid() || len(process.Application) < 30 || !strings.HasPrefix(long, process.Application) {
				f.Errorf("%q: %+v", letter, process)
			}
			f.must(lease.Unlock(f.Context()))
			f.must(r.Close(f.Context()))
			check.Value(f.cell.DB.ExecContext(f.Context(), "DELETE FROM INT_LOCK_NAME WHERE REGION = '"+f.region+"'"))(f)
		}
	}),
	once("AWaiterNamesTheKeyOfJava", func(f *fixture) {
		r := f.naming(sqllock.RegistryOptions{})
		java := f.repository(sqllock.RepositoryOptions{TTL: ttl})
		got, err := java.Acquire(f.Context(), "k", "5f8b2c1e-0000-4000-8000-123456789abc", ttl)
		f.must(err)
		equal(f, "acquired", got.Acquired, true)
		waiting := f.waiter(f.Context(), f.obtain(r).Lock)
		row := f.named(r, 1)[0]
		equal(f, "key", row.Key, "k")
		equal(f, "process", row.Process, sqllock.Process{})
		f.must(r.Close(f.Context()))
		f.is((<-waiting).err, sqllock.ErrClosed)
	}),
	inEachCell("AnotherProcessSeesWhoWaits", func(f *fixture) {
		r := f.naming(sqllock.RegistryOptions{Application: "orders"})
		other := f.process()
		odd := "Bestellung/ü \x00 \"\\ 🔒"
		lease := f.acquire(f.obtainKey(f.registryOver(other, sqllock.RegistryOptions{TTL: ttl}), odd))
		waiting := f.waiter(f.Context(), f.obtainKey(r, odd).Lock)
		w := f.waiters(other, 1)[0]
		if w.LockKey != check.Value(other.LockKey(odd))(f) || w.Key != odd || w.ClientID != r.Repository().ClientID() || w.Callers != 1 || w.Waited < 5*time.Second {
			f.Errorf("%+v", w)
		}
		equal(f, "application", w.Process.Application, "orders")
		equal(f, "rows", f.count("ID LIKE 'wait:%'"), 1)
		equal(f, "times-to-live", f.count("ID = 'ttl:"+other.ClientID()+"' AND NAME = '[300000]'"), 1)
		f.must(lease.Unlock(f.Context()))
		f.must(f.leaseOf(waiting).Unlock(f.Context()))
		f.waiters(other, 0)
		for f.count("ID LIKE 'wait:%'") > 0 { // a database that is busy may not do it at once
			check.Value(f.cell.DB.ExecContext(f.Context(), "UPDATE INT_LOCK_NAME SET SEEN = '1990-01-01 00:00:00' WHERE REGION = '"+f.region+"'"))(f)
			f.must(check.ErrorOf(r.DeleteExpired(f.Context())))
			f.pause(10 * time.Millisecond)
		}
	}),
	inVirtualTime("AWaiterWithoutNamesWritesNone", func(f *fixture) {
		silent := f.naming(sqllock.RegistryOptions{DisableNames: true})
		f.acquire(f.obtainKey(f.naming(sqllock.RegistryOptions{}), "k"))
		f.is(check.ErrorOf(f.obtainKey(silent, "k").TryLockFor(f.Context(), 20*time.Second)), sqllock.ErrNotAcquired)
		equal(f, "waiters", f.count("ID LIKE 'wait:%'"), 0)
	}),
	once("OldNamesAreDeleted", func(f *fixture) {
		r := f.naming(sqllock.RegistryOptions{})
		f.acquire(f.obtainKey(r, "old"))
		f.acquire(f.obtainKey(r, "new"))
		f.named(r, 2)
		old := check.Value(r.Repository().LockKey("old"))(f)
		_, err := f.cell.DB.ExecContext(f.Context(), "UPDATE INT_LOCK_NAME SET SEEN = '1990-01-01 00:00:00' WHERE ID = 'key:"+old+"' AND REGION = '"+f.region+"'")
		f.must(err)
		for f.count("ID LIKE 'key:%'") > 1 { // a database that is busy may not do it at once
			f.must(check.ErrorOf(r.DeleteExpired(f.Context())))
			f.pause(10 * time.Millisecond)
		}
		equal(f, "names that are left", f.count("ID LIKE 'key:%'"), 1)
	}),
	inEachCell("RunsAreKept", func(f *fixture) {
		const key = "Bericht/ü"
		one, two, silent := f.naming(sqllock.RegistryOptions{Application: "report"}), f.naming(sqllock.RegistryOptions{}), f.naming(sqllock.RegistryOptions{DisableNames: true})
		runs.Record(f.Context(), silent, key, runs.Last{})
		runs.Skip(f.Context(), silent, key, 1)
		if _, ok := runs.Of(f.Context(), two.Repository(), key); ok {
			f.Fatal("a registry without names has written")
		}
		f.recorded(one, key, runs.Last{Took: 1500 * time.Millisecond}, 1)
		f.aged(f.lockKey(one, key), time.Hour)
		code := 7
		f.recorded(two, key, runs.Last{Took: time.Second, Failed: true, Code: &code}, 2)
		run := f.recorded(one, key, runs.Last{Took: time.Minute, Failed: true, Code: &code}, 3)
		if run.Key != key || run.Region != f.region || run.Failures != 2 || run.Skips != 0 || run.Skipped != nil {
			f.Fatalf("%+v", run)
		}
		if run.Succeeded == nil || *run.Succeeded < time.Hour || *run.Succeeded > 2*time.Hour {
			f.Fatalf("succeeded %v ago", run.Succeeded)
		}
		if l := run.Last; !l.Failed || *l.Code != code || l.Took != time.Minute || l.Process.Application != "report" || l.Ended > time.Hour {
			f.Fatalf("%+v", l)
		}
		for n := int64(1); n < 4; n++ {
			for run.Skips < n { // a database that is busy may not do it at once
				runs.Skip(f.Context(), two, key, n-run.Skips)
				run, _ = runs.Of(f.Context(), one.Repository(), key)
			}
		}
		if run.Skips != 3 || run.Skipped == nil || *run.Skipped > time.Hour || run.Runs != 3 {
			f.Fatalf("%+v", run)
		}
		f.recorded(one, "another", runs.Last{}, 1)
		for found := true; found; _, found = runs.Of(f.Context(), two.Repository(), key) { // likewise
			f.must(check.ErrorOf(runs.Forget(f.Context(), one.Repository(), key)))
		}
		equal(f, "what is left", f.count("(ID LIKE 'run%' OR ID LIKE 'skip%')"), 1)
	}),
	once("RunsAreDeletedLater", func(f *fixture) {
		r := f.naming(sqllock.RegistryOptions{})
		for key, age := range map[string]time.Duration{"weekly": 89 * 24 * time.Hour, "gone": 91 * 24 * time.Hour} {
			f.recorded(r, key, runs.Last{}, 1)
			f.aged(f.lockKey(r, key), age)
		}
		for f.count("ID LIKE 'run%'") > 1 { // a database that is busy may not do it at once
			f.must(check.ErrorOf(r.DeleteExpired(f.Context())))
			f.pause(10 * time.Millisecond)
		}
		_, found := runs.Of(f.Context(), r.Repository(), "weekly")
		equal(f, "the weekly job is known", found, true)
	}),
}

// naming returns the registry of another process.
func (f *fixture) naming(opts sqllock.RegistryOptions) *sqllock.Registry {
	f.Helper()
	opts.TTL = ttl
	return f.registryOver(f.process(), opts)
}

func (f *fixture) obtainKey(r *sqllock.Registry, key string) *sqllock.JdbcLock {
	f.Helper()
	lock := check.Value(r.Obtain(key))(f)
	return lock
}

// named returns the rows of the region by key, once n of them have one.
func (f *fixture) named(r *sqllock.Registry, n int) []sqllock.Row {
	f.Helper()
	for {
		rows := check.Value(r.Repository().List(f.Context()))(f)
		rows = slices.DeleteFunc(rows, func(row sqllock.Row) bool { return row.Region != f.region || row.Key == "" })
		if len(rows) == n {
			slices.SortFunc(rows, func(a, b sqllock.Row) int { return strings.Compare(a.Key, b.Key) })
			return rows
		}
		f.pause(50 * time.Millisecond)
	}
}

// recorded records the n-th run of a job, and returns what is known of it.
func (f *fixture) recorded(r *sqllock.Registry, key string, last runs.Last, n int64) (run runs.Run) {
	f.Helper()
	for run.Runs < n { // a database that is busy may not do it at once
		runs.Record(f.Context(), r, key, last)
		run, _ = runs.Of(f.Context(), r.Repository(), key)
		f.pause(10 * time.Millisecond)
	}
	return run
}

// aged makes what is known of the last run of a job older.
func (f *fixture) aged(lockKey string, age time.Duration) {
	f.Helper()
	seen := time.Now().UTC().Add(-age).Format(time.DateTime)
	f.must(check.ErrorOf(f.cell.DB.ExecContext(f.Context(), "UPDATE INT_LOCK_NAME SET SEEN = '"+seen+"' WHERE ID = 'run:"+lockKey+"' AND REGION = '"+f.region+"'")))
}

func (f *fixture) lockKey(r *sqllock.Registry, key string) string {
	f.Helper()
	return check.Value(r.Repository().LockKey(key))(f)
}

// waiters returns the waiters of the region, once there are n.
func (f *fixture) waiters(r *sqllock.Repository, n int) []sqllock.Waiter {
	f.Helper()
	for {
		all := slices.DeleteFunc(r.Waiters(f.Context()), func(w sqllock.Waiter) bool { return w.Region != f.region })
		if len(all) == n {
			return all
		}
		f.pause(50 * time.Millisecond)
	}
}

// count returns how many names of the region there are for which a condition holds.
func (f *fixture) count(condition string) (n int) {
	f.Helper()
	f.must(f.cell.DB.GetContext(f.Context(), &n, "SELECT COUNT(*) FROM INT_LOCK_NAME WHERE REGION = '"+f.region+"' AND "+condition))
	return n
}
