package servers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/observe"
)

var bells = databases{"MariaDB": dbtest.MySQL, "MariaDB, newest": dbtest.MariaDBNewest, "MySQL": dbtest.OracleMySQL}

// A ringing is a database whose processes wake each other.
type ringing struct {
	*testing.T

	db   *dbtest.DB
	told chan observe.Fallback // of its processes; nil if that is not wanted
}

func eachBell(t *testing.T, test func(*ringing)) {
	t.Helper()
	bells.migrated(t, func(t *testing.T, db *dbtest.DB) { test(&ringing{T: t, db: db}) })
}

// process returns the registry of another process, that goes on only if it is woken.
func (r *ringing) process() *sqllock.Registry {
	r.Helper()
	return r.polling(never)
}

func (r *ringing) polling(every time.Duration) *sqllock.Registry {
	r.Helper()
	o := opener{"mysqllock", nil, openMySQL}
	return o.opened(r.T, r.db.DSN, openOptions{
		wake: true, repository: sqllock.RepositoryOptions{Observers: r.observers()},
		registry: sqllock.RegistryOptions{TTL: never, IdleBetweenTries: every, NoRenew: true},
	})
}

func (r *ringing) observers() []*observe.Observer {
	return []*observe.Observer{{Fallback: func(_ context.Context, e observe.Fallback) {
		select {
		case r.told <- e:
		default: // it is not wanted
		}
	}}}
}

// awaitFallback waits until a process has told why its releases wake no one.
func (r *ringing) awaitFallback(because string) {
	r.Helper()
	if e := <-r.told; !e.Unwoken || e.OutOfTurn || !strings.Contains(e.Reason.Error(), because) {
		r.Errorf("told %+v, not %q", e, because)
	}
}

// wait returns a channel that receives the lease of a call that waits.
func (r *ringing) wait(process *sqllock.Registry, key string) <-chan *sqllock.Lease {
	got := make(chan *sqllock.Lease, 1)
	r.waitFor(process, key, got)
	return got
}

// waitFor has got receive the lease of a call that waits.
func (r *ringing) waitFor(process *sqllock.Registry, key string, got chan<- *sqllock.Lease) {
	go func() {
		lease, err := process.Lock(r.Context(), key)
		if err != nil {
			r.Error(err)
		}
		got <- lease
	}()
}

// sessions returns the numbers of those that sleep with a name, or wait for one, by their state.
func (r *ringing) sessions(state string) (numbers []int64) {
	r.Helper()
	must(r, r.db.DB.SelectContext(r.Context(), &numbers, "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND state = ?", state))
	return numbers
}

const asleep, queued = "User sleep", "User lock"

// await waits until so many sessions sleep, and so many wait for a name.
func (r *ringing) await(sleep, queue int) {
	r.Helper()
	awaitThat(r.T, "the processes sleep", func() bool { return len(r.sessions(asleep)) == sleep && len(r.sessions(queued)) == queue })
}

func (r *ringing) unlock(leases ...*sqllock.Lease) {
	r.Helper()
	for _, lease := range leases {
		must(r, lease.Unlock(r.Context()))
	}
}

// wakes hands a lock over, a few times. Without a ring each would take as long as a sleep, four seconds and more: the process
// polls when that ends. On a slow machine, one that is woken may take seconds as well, but not each time.
func (r *ringing) wakes(handOver func() time.Duration) {
	r.Helper()
	for range 30 {
		if handOver() < 2*time.Second {
			return
		}
	}
	r.Error("no release woke the process")
}

// handOver releases a lease, and returns that of the call that waits for the lock, and how long that took.
func (r *ringing) handOver(lease *sqllock.Lease, got <-chan *sqllock.Lease) (*sqllock.Lease, time.Duration) {
	r.Helper()
	began := time.Now()
	r.unlock(lease)
	return <-got, time.Since(began)
}

// A release wakes a process that waits, and one that does not wait any more has no session that sleeps.
func TestBell(t *testing.T) {
	t.Parallel()
	eachBell(t, func(r *ringing) {
		holder, waiter := r.process(), r.process()
		r.wakes(func() time.Duration {
			lease := check.Value(holder.Lock(r.Context(), "k"))(r)
			got := r.wait(waiter, "k")
			r.await(1, 0)
			waited, took := r.handOver(lease, got)
			r.unlock(waited)
			r.await(0, 0)
			return took
		})
	})
}

// A process that waits for several locks is woken for each of them, also if another one releases all at once.
func TestBell_SeveralKeys(t *testing.T) {
	t.Parallel()
	eachBell(t, func(r *ringing) {
		holder, waiter := r.process(), r.process()
		one := check.Value(holder.Lock(r.Context(), "one"))(r)
		joint := check.Value(check.Value(holder.ObtainAll("two", "three"))(r).Lock(r.Context()))(r)
		gotOne, gotTwo, gotThree := r.wait(waiter, "one"), r.wait(waiter, "two"), r.wait(waiter, "three")
		r.unlock(one)
		r.unlock(<-gotOne)
		r.unlock(joint)
		r.unlock(<-gotTwo, <-gotThree)
		r.await(0, 0)
	})
}

// One process at a time has the name, and the others wait for it. Who acquires the lock first is another matter: a process polls
// soon after it has begun to wait, and may be sooner than the one that is woken.
func TestBell_SeveralProcesses(t *testing.T) {
	t.Parallel()
	eachBell(t, func(r *ringing) {
		holder, waiters := r.process(), []*sqllock.Registry{r.process(), r.process(), r.process()}
		r.wakes(func() (longest time.Duration) {
			lease := check.Value(holder.Lock(r.Context(), "k"))(r)
			got := make(chan *sqllock.Lease, len(waiters))
			for i, waiter := range waiters {
				r.waitFor(waiter, "k", got)
				r.await(1, i)
			}
			for i := range waiters {
				var took time.Duration
				lease, took = r.handOver(lease, got)
				longest = max(longest, took)
				r.await(min(1, 2-i), max(0, 1-i))
			}
			r.unlock(lease)
			return longest
		})
	})
}

// A release that rings for nobody, as one of Java's or of a process that ends before it rings, is found by a poll.
func TestBell_LostRing(t *testing.T) {
	t.Parallel()
	eachBell(t, func(r *ringing) {
		check.Value(r.process().Lock(r.Context(), "k"))(r)
		got := r.wait(r.polling(100*time.Millisecond), "k")
		r.await(1, 0)
		r.db.DB.MustExecContext(r.Context(), "DELETE FROM INT_LOCK")
		r.unlock(<-got)
	})
}

// A process whose session is killed, or whose connection ends, sleeps in another one.
func TestBell_KilledSession(t *testing.T) {
	t.Parallel()
	eachBell(t, func(r *ringing) {
		lease := check.Value(r.process().Lock(r.Context(), "k"))(r)
		got := r.wait(r.process(), "k")
		r.await(1, 0)
		killed := r.sessions(asleep)[0]
		r.db.DB.MustExecContext(r.Context(), fmt.Sprint("KILL ", killed))
		awaitThat(r.T, "the process sleeps again", func() bool {
			now := r.sessions(asleep)
			return len(now) == 1 && now[0] != killed
		})
		r.unlock(lease)
		r.unlock(<-got)
	})
}

// Limits on statements do not end a sleep.
func TestBell_Limits(t *testing.T) {
	t.Parallel()
	eachBell(t, func(r *ringing) {
		limits := map[string]string{"max_statement_time": "1", "readTimeout": "1s"}
		if r.db.Version(r)[0] != '1' { // MySQL's
			limits = map[string]string{"max_execution_time": "1000", "readTimeout": "1s"}
		}
		lease := check.Value(r.process().Lock(r.Context(), "k"))(r)
		limited := &ringing{T: r.T, db: &dbtest.DB{Driver: r.db.Driver, DSN: r.db.With(r, limits)}}
		got := limited.wait(limited.process(), "k")
		awaitThat(r.T, "a statement has slept for two seconds", func() bool {
			var n int
			must(r, r.db.DB.GetContext(r.Context(), &n, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state = ? AND time >= 2", asleep))
			return n > 0
		})
		r.unlock(lease)
		r.unlock(<-got)
	})
}

// Statements are shorter than what the slow log takes for long.
func TestBell_SlowLog(t *testing.T) {
	t.Parallel()
	eachBell(t, func(r *ringing) {
		lease := check.Value(r.process().Lock(r.Context(), "k"))(r)
		brief := &ringing{T: r.T, db: &dbtest.DB{Driver: r.db.Driver, DSN: r.db.With(r, map[string]string{"long_query_time": "1"})}}
		got := brief.wait(brief.process(), "k")
		r.await(1, 0)
		r.db.DB.MustExecContext(r.Context(), "DELETE FROM INT_LOCK") // found when the sleep ends, whose successor's beginning polls
		r.unlock(<-got)
		is(r, lease.Unlock(r.Context()), sqllock.ErrLockLost)
	})
}

// Another user's session cannot be woken without the right to. The release is none the worse for it.
func TestBell_OtherUser(t *testing.T) {
	t.Parallel()
	eachBell(t, func(r *ringing) {
		dsn, _ := withDocumentedGrants(r.T, r.db)
		other := &ringing{r.T, &dbtest.DB{Driver: r.db.Driver, DSN: dsn}, make(chan observe.Fallback, 1)}
		releaser := other.process()
		for range 3 {
			lease := check.Value(releaser.Lock(r.Context(), "k"))(r)
			got := r.wait(r.polling(100*time.Millisecond), "k")
			r.await(1, 0)
			r.unlock(lease)
			r.unlock(<-got)
			r.await(0, 0)
		}
		other.awaitFallback("KILL QUERY: Error 1095")
	})
}

// Where sqllock does not know the server, or none of its statements may take the time to sleep, the process is told so.
func TestBell_WithoutEffect(t *testing.T) {
	t.Parallel()
	eachBell(t, func(r *ringing) {
		r.told = make(chan observe.Fallback, 1)
		options := openOptions{wake: true, repository: sqllock.RepositoryOptions{Layout: dialect.Spring7, Observers: r.observers()}}
		opener{"mysqllock", nil, openMySQL}.opened(r.T, r.db.DSN, options)
		r.awaitFallback("Layout")
		brief := &ringing{r.T, &dbtest.DB{Driver: r.db.Driver, DSN: r.db.With(r, map[string]string{"long_query_time": "0.05"})}, r.told}
		lease := check.Value(r.process().Lock(r.Context(), "k"))(r)
		got := brief.wait(brief.polling(100*time.Millisecond), "k")
		r.awaitFallback("long_query_time")
		r.unlock(lease)
		r.unlock(<-got)
	})
}
