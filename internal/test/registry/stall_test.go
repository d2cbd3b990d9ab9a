package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/job"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// A stall has the server keep what is sent to it, and do it when it ends, although the callers have left: as MySQL does under FLUSH
// TABLES WITH READ LOCK, where it answers reads, or with a full disk.
type stall struct{ over chan struct{} }

func stalls(s *fixture, ops ...flaky.Op) *stall {
	over := make(chan struct{})
	s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
		if m.Done {
			return nil
		}
		for _, op := range ops {
			if m.Op == op {
				<-over
			}
		}
		return nil
	})
	return &stall{over}
}

func (st *stall) end() { close(st.over) }

func (s *fixture) rows() (n int) {
	s.Helper()
	must(s.T, s.db.DB.GetContext(s.Context(), &n, "SELECT COUNT(*) FROM INT_LOCK"))
	return n
}

var everything = []flaky.Op{flaky.Begin, flaky.Exec, flaky.Query, flaky.Commit, flaky.Rollback}

// The rows that a stalled server writes for callers that have given up go when it answers again, although no caller asks, and with
// few statements; so do those of leases that have ended meanwhile.
func TestStall_RowsOfCallersThatGaveUpGo(t *testing.T) {
	t.Parallel()
	for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
		runInBubble(t, fmt.Sprint(isolation), func(t *testing.T) {
			s := newFixture(t, isolation)
			s.registry = newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: renewalTTL})
			first := check.Value(s.registry.Lock(t.Context(), "unlocked meanwhile"))(t)
			outage := stalls(s, everything...)
			for i := range 20 {
				for range 3 {
					err := check.ErrorOf(s.registry.TryLockFor(t.Context(), fmt.Sprint("k", i), time.Second))
					is(t, err, sqllock.ErrDatabase)
				}
			}
			unlocked := check.Begin(func() error { return first.Unlock(t.Context()) })
			time.Sleep(time.Minute)
			outage.end()
			t.Logf("Unlock: %v", <-unlocked) // whichever answer it has got
			time.Sleep(20 * time.Second)
			check.Equal(t, "rows", s.rows(), 0)
			s.connector.Follow(nil)
			time.Sleep(renewalTTL)
			if n := s.connector.Count(); n > 100 {
				t.Errorf("%d operations in %v", n, renewalTTL)
			}
			before := s.connector.Count()
			time.Sleep(renewalTTL)
			check.Equal(t, "operations, after all is forgotten", s.connector.Count()-before, 0)
		})
	}
}

// A row that the server writes for a caller that has given up, whose driver has obeyed its context, goes before its lease would end: by the
// process of that caller, which does not ask for the key again; or it acquires the lock at once. So it is whether the caller or the
// patience of the table has ended the wait.
func TestStall_RowsThatAreWrittenLateGo(t *testing.T) {
	t.Parallel()
	within := func(s *fixture, r *sqllock.Registry) error {
		return check.ErrorOf(r.TryLockFor(s.Context(), "k", time.Second))
	}
	try := func(s *fixture, r *sqllock.Registry) error { return check.ErrorOf(r.TryLock(s.Context(), "k")) }
	wait := func(s *fixture, r *sqllock.Registry) error { return check.ErrorOf(r.Lock(s.Context(), "k")) }
	for before, caller := range map[string]func(*fixture, *sqllock.Registry) error{"a limit": within, "no limit": wait, "a try": try} {
		for after, gone := range map[string]func(*fixture, *sqllock.Registry, *lateRow){
			"no caller asks": func(s *fixture, _ *sqllock.Registry, late *lateRow) {
				late.write(s)
				time.Sleep(20 * time.Second)
				check.Equal(s, "rows", s.rows(), 0)
			},
			"a caller asks": func(s *fixture, r *sqllock.Registry, late *lateRow) {
				late.write(s)
				must(s.T, try(s, r))
			},
			"a caller asks that has seen the key taken": func(s *fixture, r *sqllock.Registry, late *lateRow) {
				rival := check.Value(newRegistry(s.T, late.repository, &sqllock.RegistryOptions{TTL: renewalTTL, NoRenew: true}).TryLock(s.Context(), "k"))(s.T)
				is(s.T, try(s, r), sqllock.ErrNotAcquired)
				must(s.T, rival.Unlock(s.Context()))
				late.write(s)
				must(s.T, try(s, r)) // it reads first
			},
			"the registry is closed": func(s *fixture, r *sqllock.Registry, late *lateRow) {
				late.write(s)
				must(s.T, r.Close(s.Context()))
				check.Equal(s, "rows", s.rows(), 0)
			},
		} {
			runInBubble(t, before+", "+after, func(t *testing.T) {
				s := newPlainFixture(t, sqllock.RepositoryOptions{})
				r := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: renewalTTL, NoRenew: true})
				last := s.repository.NewHolder()
				blackHole(s)
				is(t, caller(s, r), sqllock.ErrDatabase)
				time.Sleep(time.Minute) // it is looked for all the time
				s.connector.Follow(nil)
				time.Sleep(20 * time.Second) // and now in vain
				gone(s, r, &lateRow{newRepository(t, s.db.DB, nil), next(t, last)})
			})
		}
	}
}

// A lateRow is that of a caller that has left. Another process writes it in the server's place.
type lateRow struct {
	repository *sqllock.Repository
	holder     string
}

func (l *lateRow) write(s *fixture) {
	s.Helper()
	must(s.T, check.ErrorOf(l.repository.Acquire(s.Context(), "k", l.holder, renewalTTL)))
	check.Equal(s, "rows", s.rows(), 1)
}

// next returns the holder that comes after last in its process.
func next(t *testing.T, last string) string {
	t.Helper()
	client, number, _ := strings.Cut(last, "-")
	return fmt.Sprintf("%s-%011x", client, check.Value(strconv.ParseUint(number, 16, 64))(t)+1)
}

// A row that comes when its caller has given up, and has been looked for in vain, does not keep this process waiting.
func TestStall_NoProcessWaitsForItsOwnRow(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(*fixture, *sqllock.Registry) error{
		"a try": func(s *fixture, r *sqllock.Registry) error { return check.ErrorOf(r.TryLock(s.Context(), "k")) },
		"a wait": func(s *fixture, r *sqllock.Registry) error {
			return check.ErrorOf(r.TryLockFor(s.Context(), "k", time.Second))
		},
		"joint": func(s *fixture, r *sqllock.Registry) error {
			return check.ErrorOf(obtainAll(s.T, r, "k", "l").TryLock(s.Context()))
		},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newPlainFixture(t, sqllock.RepositoryOptions{})
			r := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: renewalTTL, NoRenew: true})
			late := holdBack(s, flaky.Query)
			is(t, check.ErrorOf(r.TryLockFor(t.Context(), "k", time.Second)), sqllock.ErrDatabase)
			<-late.reached
			lease := check.Value(r.TryLock(t.Context(), "k"))(t) // it has looked
			must(t, lease.Unlock(t.Context()))
			close(late.let)
			synctest.Wait()
			must(t, again(s, r))
		})
	}
}

// An attempt that has no answer before its limit ends is an error of the database, of whatever kind the lock is, and not a lock that
// is taken: also for a caller that queues behind it.
func TestStall_SilenceIsAnErrorOfTheDatabase(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	within := func(s *fixture, lock func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(s.Context(), limit)
		defer cancel()
		return lock(ctx)
	}
	three := func(s *fixture) *semaphore.Semaphore { return check.Value(semaphore.New(s.registry, "k", 3))(s.T) }
	shelf := func(s *fixture) *rwlock.Lock { return check.Value(rwlock.New(s.registry, "k"))(s.T) }
	for name, attempt := range map[string]func(s *fixture) error{
		"lock": func(s *fixture) error { return check.ErrorOf(s.lock.TryLockFor(s.Context(), limit)) },
		"context": func(s *fixture) error {
			return within(s, func(ctx context.Context) error { return check.ErrorOf(s.lock.Lock(ctx)) })
		},
		"try": func(s *fixture) error {
			return within(s, func(ctx context.Context) error { return check.ErrorOf(s.lock.TryLock(ctx)) })
		},
		"joint": func(s *fixture) error {
			return check.ErrorOf(obtainAll(s.T, s.registry, "k", "l").TryLockFor(s.Context(), limit))
		},
		"queued": func(s *fixture) error {
			first := check.Begin(func() error { return check.ErrorOf(s.lock.TryLockFor(s.Context(), limit)) })
			synctest.Wait()
			err := check.ErrorOf(s.lock.TryLockFor(s.Context(), limit))
			is(s.T, <-first, sqllock.ErrDatabase)
			return err
		},
		"permit":  func(s *fixture) error { return check.ErrorOf(three(s).TryAcquireFor(s.Context(), 1, limit)) },
		"permits": func(s *fixture) error { return check.ErrorOf(three(s).TryAcquireFor(s.Context(), 2, limit)) },
		"permit, try": func(s *fixture) error {
			return within(s, func(ctx context.Context) error { return check.ErrorOf(three(s).TryAcquire(ctx, 1)) })
		},
		"reader": func(s *fixture) error { return check.ErrorOf(shelf(s).TryRLockFor(s.Context(), limit)) },
		"writer": func(s *fixture) error { return check.ErrorOf(shelf(s).TryLockFor(s.Context(), limit)) },
		"job": func(s *fixture) error {
			return within(s, job.New(s.registry, "k", 0, func(context.Context) error { return errors.New("it ran") }))
		},
	} {
		for what, ops := range map[string][]flaky.Op{"everything": everything, "writes": {flaky.Begin, flaky.Exec, flaky.Commit}} {
			runInBubble(t, name+", "+what, func(t *testing.T) {
				s := newFixture(t, sqllock.Serializable)
				s.repository = newRepository(t, s.pool, &sqllock.RepositoryOptions{Isolation: sqllock.Serializable})
				outage := stalls(s, ops...)
				defer outage.end()
				began := time.Now()
				err := attempt(s)
				is(t, err, sqllock.ErrDatabase)
				check.IsNot(t, err, sqllock.ErrNotAcquired)
				check.Takes(t, "the call", began, limit, limit+slack)
			})
		}
	}
}

// A limit that is shorter than an answer takes, and a caller that leaves, are no silence: nothing is known of the lock.
func TestStall_NoSilence(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		s.delay(10 * time.Millisecond)
		err := check.ErrorOf(s.lock.TryLockFor(t.Context(), time.Millisecond))
		is(t, err, sqllock.ErrNotAcquired)
		check.IsNot(t, err, sqllock.ErrDatabase)
		blackHole(s)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err = check.ErrorOf(s.lock.Lock(ctx))
		is(t, err, sqllock.ErrNotAcquired, context.Canceled)
		s.connector.Follow(nil)
	})
}

// The last statement of a long wait may have no answer before the wait's limit: then the lock is taken, as the answers before it said.
// The calls of locks that are made of several rows consist of shorter waits.
func TestStall_ALateAnswerIsNoSilence(t *testing.T) {
	t.Parallel()
	const (
		limit = 4 * time.Second
		rest  = 500 * time.Millisecond
	)
	one := func(s *fixture, r *sqllock.Registry) *semaphore.Semaphore {
		return check.Value(semaphore.New(r, "k", 1))(s.T)
	}
	shelf := func(s *fixture, r *sqllock.Registry) *rwlock.Lock { return check.Value(rwlock.New(r, "k"))(s.T) }
	write := func(s *fixture, r *sqllock.Registry, limit time.Duration) error {
		return check.ErrorOf(shelf(s, r).TryLockFor(s.Context(), limit))
	}
	for name, c := range map[string]struct {
		held    func(*fixture, *sqllock.Registry) (*sqllock.Lease, error)
		attempt func(*fixture, *sqllock.Registry) error
	}{
		"lock": {
			held: func(s *fixture, r *sqllock.Registry) (*sqllock.Lease, error) { return r.Lock(s.Context(), "k") },
			attempt: func(s *fixture, r *sqllock.Registry) error {
				return check.ErrorOf(r.TryLockFor(s.Context(), "k", limit))
			},
		},
		"permit": {
			held: func(s *fixture, r *sqllock.Registry) (*sqllock.Lease, error) {
				return one(s, r).Acquire(s.Context(), 1)
			},
			attempt: func(s *fixture, r *sqllock.Registry) error {
				return check.ErrorOf(one(s, r).TryAcquireFor(s.Context(), 1, limit))
			},
		},
		"reader": {
			held: func(s *fixture, r *sqllock.Registry) (*sqllock.Lease, error) { return shelf(s, r).Lock(s.Context()) },
			attempt: func(s *fixture, r *sqllock.Registry) error {
				return check.ErrorOf(shelf(s, r).TryRLockFor(s.Context(), limit))
			},
		},
		"writer": {
			held:    func(s *fixture, r *sqllock.Registry) (*sqllock.Lease, error) { return shelf(s, r).RLock(s.Context()) },
			attempt: func(s *fixture, r *sqllock.Registry) error { return write(s, r, limit) },
		},
		"writer behind another": { // whose end leaves it little time for a wait of its own
			held: func(s *fixture, r *sqllock.Registry) (*sqllock.Lease, error) { return shelf(s, r).RLock(s.Context()) },
			attempt: func(s *fixture, r *sqllock.Registry) error {
				other := newRegistry(s.T, s.repository, &sqllock.RegistryOptions{NoRenew: true})
				first := check.Begin(func() error { return write(s, other, limit-rest-rest/5) })
				time.Sleep(time.Millisecond)
				err := write(s, r, limit)
				is(s.T, <-first, sqllock.ErrNotAcquired)
				return err
			},
		},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Serializable)
			holder := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Minute, NoRenew: true})
			check.Value(c.held(s, holder))(t)
			outage := make(chan *stall, 1)
			time.AfterFunc(limit-rest, func() { outage <- stalls(s, everything...) })
			err := c.attempt(s, newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Minute, NoRenew: true}))
			(<-outage).end()
			is(t, err, sqllock.ErrNotAcquired)
			check.IsNot(t, err, sqllock.ErrDatabase)
		})
	}
}

// A wait for a lock that is made of several rows does not end because an answer came after the end of the lease: it tries again, and
// only says what is wrong if that is so again and again.
func TestSeats_AnAnswerThatIsTooLate(t *testing.T) {
	t.Parallel()
	const ttl = 5 * time.Second
	for name, c := range map[string]struct {
		late int32
		want error
		held bool // so that it waits
	}{
		"at once": {late: 1},
		"once":    {late: 1, held: true},
		"twice":   {late: 2, held: true},
		"always":  {late: 1000, held: true, want: sqllock.ErrDatabase},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Serializable)
			var written, slow atomic.Int32
			late := func(_ context.Context, m flaky.Moment) error {
				switch {
				case m.Op == flaky.Commit && m.Done:
					written.Store(1)
				case m.Op == flaky.Query && !m.Done && written.Swap(0) == 1 && slow.Load() < c.late:
					slow.Add(1)
					time.Sleep(ttl)
				}
				return nil
			}
			shelf := func(ttl time.Duration) *rwlock.Lock {
				return check.Value(rwlock.New(newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true}), "k"))(t)
			}
			read := func() error { return check.ErrorOf(shelf(ttl).TryRLockFor(t.Context(), time.Minute)) }
			var err error
			if c.held {
				writer := check.Value(shelf(time.Minute).Lock(t.Context()))(t)
				reader := check.Begin(read)
				time.Sleep(time.Second)
				must(t, writer.Unlock(t.Context()))
				s.connector.Follow(late)
				err = <-reader
			} else {
				s.connector.Follow(late)
				err = read()
			}
			is(t, err, c.want)
			if n := slow.Load(); n < min(c.late, 3) { // the first may be that of a try that was refused
				t.Errorf("%d late answers", n)
			}
		})
	}
}

// A leftover row that the sweep deletes while a single try has its answer on the way does not make the lock look held.
func TestStall_ARowThatIsSweptWhenItWasRead(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newPlainFixture(t, sqllock.RepositoryOptions{})
		r := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: renewalTTL, NoRenew: true})
		lease := check.Value(newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: renewalTTL, NoRenew: true}).TryLock(t.Context(), "k"))(t)
		is(t, check.ErrorOf(r.TryLock(t.Context(), "k")), sqllock.ErrNotAcquired) // so that it reads before the next try
		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		is(t, lease.Unlock(t.Context()), sqllock.ErrDatabase)
		var late atomic.Bool
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && m.Done && late.CompareAndSwap(false, true) {
				time.Sleep(5 * time.Second) // the sweep comes meanwhile
			}
			return nil
		})
		must(t, check.ErrorOf(r.TryLock(t.Context(), "k")))
		s.connector.Follow(nil)
	})
}
