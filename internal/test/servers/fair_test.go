package servers_test

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/notify"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/wire"
	"github.com/sqllock/sqllock/sync/leader"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

var fair = sqllock.RegistryOptions{Fair: true, TTL: never, WaitThroughOutages: true, NoRenew: true}

// A line is the processes that want a fair lock, and the order in which they get it.
type line struct {
	*testing.T

	db     *dbtest.DB
	driver string
	turns  sqltext.Turns // with the number of the key
	turn   string        // what the server calls the turn
	held   *sqllock.Lease

	others  int // how many queue whenever one of them has acquired
	mu      sync.Mutex
	got     []int
	waiting sync.WaitGroup
}

// onPostgres returns the line on a database where no other test has waits end, see
// TestFair_CreateIndexConcurrently.
func onPostgres(t *testing.T, open func(testing.TB) *dbtest.DB, driver string) *line {
	t.Helper()
	return &line{T: t, db: up(t, alone(open)), driver: driver}
}

// eachLine runs a test on each server and driver over which locks can be fair.
func eachLine(t *testing.T, test func(*line)) {
	t.Helper()
	for name, s := range map[string]struct {
		open   func(testing.TB) *dbtest.DB
		driver string
	}{
		"PostgreSQL, pgx": {dbtest.Postgres, "pgx"}, "PostgreSQL, lib/pq": {dbtest.PostgresNewest, "postgres"},
		"MariaDB": {dbtest.MySQL, "mysql"}, "MySQL": {dbtest.OracleMySQL, "mysql"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if s.driver == "mysql" {
				test(&line{T: t, db: up(t, s.open), driver: s.driver})
			} else {
				test(onPostgres(t, s.open, s.driver))
			}
		})
	}
}

// forKey has l look at the queue of a key.
func (l *line) forKey(key string) {
	l.Helper()
	names := check.Value(sqltext.NamesFor(""))(l)
	lockKey := check.Value(sqllock.SpringKeys(key))(l)
	sum := sha256.Sum256([]byte(names.Topic(sqllock.DefaultRegion, lockKey)))
	number := fmt.Sprint(int64(binary.BigEndian.Uint64(sum[:]))) //nolint:gosec // as the library does
	l.turns, l.got = sqltext.Of(l.db.Dialect).Turns(names), nil
	for _, text := range []*string{&l.turns.Begin, &l.turns.Take, &l.turns.End} {
		*text = strings.ReplaceAll(*text, ":turn", number)
	}
	call, before := l.turns.Begin, "_xact_lock("
	if l.db.Name == "mysql" {
		call, before = l.turns.End, "RELEASE_LOCK("
	}
	_, l.turn, _ = strings.Cut(strings.TrimSuffix(call, ")"), before)
}

// sessions returns the server's numbers of those that have the turn, and of those that wait for it.
func (l *line) sessions() (has, wait []int) {
	l.Helper()
	const locks = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND CAST(classid AS BIGINT) << 32 | CAST(objid AS BIGINT) = "
	queries := []string{locks + l.turn + " AND granted", locks + l.turn + " AND NOT granted"}
	if l.db.Name == "mysql" {
		queries = []string{
			"SELECT id FROM (SELECT IS_USED_LOCK(" + l.turn + ") AS id) AS used WHERE id IS NOT NULL",
			"SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND state = 'User lock' AND id <> COALESCE(IS_USED_LOCK(" + l.turn + "), 0)",
		}
	}
	must(l, l.db.DB.SelectContext(l.Context(), &wait, queries[1])) // first, so that none is overlooked that has its turn meanwhile
	must(l, l.db.DB.SelectContext(l.Context(), &has, queries[0]))
	return has, slices.DeleteFunc(wait, func(one int) bool { return slices.Contains(has, one) })
}

// await waits until so many sessions have the turn or wait for it.
func (l *line) await(n int) {
	l.Helper()
	awaitThat(l.T, fmt.Sprintf("%d processes queue", n), func() bool {
		has, wait := l.sessions()
		return len(has)+len(wait) == n
	})
}

// process returns the fair registry of another process, over a DSN. One that will be cut off is not to wait for a
// minute then.
func (l *line) process(dsn string) *sqllock.Registry {
	l.Helper()
	ctx := unhurried(l.T)
	if dsn != l.db.DSN {
		ctx = l.Context()
	}
	return l.over(ctx, l.db.OpenDSN(l, l.driver, dsn), sqllock.RepositoryOptions{}, fair)
}

func (l *line) over(ctx context.Context, pool *sqlx.DB, of sqllock.RepositoryOptions, o sqllock.RegistryOptions) *sqllock.Registry {
	l.Helper()
	return newRegistry(l.T, check.Value(sqllock.NewRepository(ctx, pool.DB, l.db.Dialect, &of))(l), &o) //nolint:contextcheck // it is closed after the test
}

// hold has a process hold the lock.
func (l *line) hold(lock lockFunc) {
	l.Helper()
	var err error
	l.held, err = lock(l.Context())
	must(l, err)
}

// queue has the i-th process lock so often, and unlock each time.
func (l *line) queue(i, times int, lock lockFunc) {
	l.waiting.Go(func() {
		for n := range times {
			lease, err := lock(l.Context())
			if err != nil {
				l.Errorf("process %d: %v", i, err)
				return
			}
			l.mu.Lock()
			l.got = append(l.got, i)
			l.mu.Unlock()
			if l.others > 0 && n < times-1 {
				l.await(l.others)
			}
			if err := lease.Unlock(l.Context()); err != nil {
				l.Errorf("process %d: %v", i, err)
			}
		}
	})
}

// queueUp has some processes queue for a key, one after the other.
func (l *line) queueUp(key string, times int, processes ...*sqllock.Registry) {
	l.Helper()
	for i, r := range processes {
		l.queue(i, times, obtain(l.T, r, key).Lock)
		l.await(i + 1)
	}
}

// want unlocks what is held, and checks in which order the processes acquire.
func (l *line) want(order ...int) {
	l.Helper()
	must(l, l.held.Unlock(l.Context()))
	l.waiting.Wait()
	if !slices.Equal(l.got, order) {
		l.Errorf("acquired in the order %v, want %v", l.got, order)
	}
	l.await(0)
}

// Processes acquire in the order in which they have come, and those that ask again come after those that wait: one
// round after the other. Of the sessions that queue on PostgreSQL, the one that has the turn does not keep VACUUM
// from anything.
func TestFair_OrderOfArrival(t *testing.T) {
	t.Parallel()
	eachLine(t, func(l *line) {
		l.forKey("k")
		processes := make([]*sqllock.Registry, 5)
		for i := range processes {
			processes[i] = l.process(l.db.DSN)
		}
		l.others = len(processes) - 1
		alone := l.process(l.db.DSN)
		l.hold(obtain(l.T, alone, "k").Lock)
		l.queueUp("k", 4, processes...)
		has, wait := l.sessions()
		for session, want := range map[int]bool{has[0]: false, wait[0]: true} {
			keeps := want
			if l.db.Name == "postgres" {
				must(l, l.db.DB.GetContext(l.Context(), &keeps, "SELECT backend_xmin IS NOT NULL FROM pg_stat_activity WHERE pid = $1", session))
			}
			if keeps != want {
				l.Errorf("session %d of %d, %d: it has a snapshot: %v", session, has, wait, keeps)
			}
		}
		l.want(slices.Repeat([]int{0, 1, 2, 3, 4}, 4)...)
		for range 3 { // its own turn is no other caller's
			once(l.T, obtain(l.T, alone, "k").TryLock)
		}
	})
}

// The one that is next is the one that is woken: none of them polls.
func TestFair_Wake(t *testing.T) {
	t.Parallel()
	l := onPostgres(t, dbtest.Postgres, "pgx")
	l.forKey("k")
	processes := make([]*sqllock.Registry, 4)
	for i := range processes {
		listener := check.Value(notify.Listen(t.Context(), l.db.DSN, nil))(t)
		t.Cleanup(func() { must(t, listener.Close()) })
		processes[i] = l.over(unhurried(t), l.db.Open(t), sqllock.RepositoryOptions{Notify: true},
			sqllock.RegistryOptions{Fair: true, TTL: never, IdleBetweenTries: never, Waker: listener, NoRenew: true})
	}
	l.others = 2
	l.hold(obtain(t, processes[3], "k").Lock)
	l.queueUp("k", 2, processes[:3]...)
	l.want(0, 1, 2, 0, 1, 2)
}

// another returns a session that has the turn of the key, and what sends it a text.
func (l *line) another() (send func(text string)) {
	l.Helper()
	conn := check.Value(l.db.DB.Conn(l.Context()))(l)
	l.Cleanup(func() {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // ends the turn
		_ = conn.Close()
	})
	send = func(text string) {
		l.Helper()
		must(l, check.ErrorOf(conn.ExecContext(l.Context(), text)))
	}
	// The server is not to end this session, which is silent for as long as a try takes.
	begin := strings.NewReplacer("timeout = 5000", "timeout = 0", "SESSION wait_timeout = 5", "SESSION wait_timeout = 600").Replace(l.turns.Begin)
	if begin == l.turns.Begin {
		l.Fatalf("what is its limit? %s", begin)
	}
	send(begin)
	if l.turns.Take != "" {
		send(l.turns.Take)
	}
	return send
}

// A try does not wait for its turn, and does not overtake those that wait.
func TestFair_TryLockIsRefusedWhileAnotherWaits(t *testing.T) {
	t.Parallel()
	eachLine(t, func(l *line) {
		l.forKey("k")
		send := l.another()
		lock := obtain(l.T, l.process(l.db.DSN), "k")
		is(l, check.ErrorOf(lock.TryLock(l.Context())), sqllock.ErrNotAcquired)
		for _, free := range []*sqllock.JdbcLock{lock.WithFair(false), lock} {
			l.hold(free.TryLock)
			must(l, l.held.Unlock(l.Context()))
			send(l.turns.End)
		}
	})
}

// Of many callers at once, whose attempts are sent together, those are refused whose turn another session has,
// whatever way the acquisitions go. The others acquire, and so do those that are not fair.
func TestFair_ManyAtOnce(t *testing.T) {
	t.Parallel()
	eachLine(t, func(l *line) {
		pool := l.db.OpenDSN(l, l.driver, l.db.DSN)
		for name, of := range map[string]sqllock.RepositoryOptions{
			"transactions": {}, "autocommit": {Isolation: sqllock.Autocommit}, "no tokens": {DisableFencing: true}, "alone": {DisableBatching: true},
		} {
			registry := l.over(unhurried(l.T), pool, of, fair)
			var taken []string
			for i := range 3 {
				key := fmt.Sprint(name, i)
				l.forKey(key)
				l.another()
				taken = append(taken, key)
			}
			var all sync.WaitGroup
			for i := range 30 {
				key := fmt.Sprint(name, i)
				lock := obtain(l.T, registry, key)
				all.Go(func() {
					lease, err := lock.TryLock(l.Context())
					switch refused := slices.Contains(taken, key); {
					case refused:
						if !errors.Is(err, sqllock.ErrNotAcquired) {
							l.Errorf("%s: %v, but its turn is taken", key, err)
						}
						if lease, err = lock.WithFair(false).TryLock(l.Context()); err != nil {
							l.Errorf("%s, not fair: %v", key, err)
							return
						}
					case err != nil:
						l.Errorf("%s: %v", key, err)
						return
					}
					if err := lease.Unlock(l.Context()); err != nil {
						l.Error(err)
					}
				})
			}
			all.Wait()
			joint := obtainAll(l.T, registry, name+"0", name+"28", name+"29") // at the turn of the first of them
			_, err := joint.TryLock(l.Context())
			first := check.Value(sqllock.SpringKeys(name + "0"))(l)
			for _, other := range []string{name + "28", name + "29"} {
				if check.Value(sqllock.SpringKeys(other))(l) < first {
					first = ""
				}
			}
			if first != "" {
				is(l, err, sqllock.ErrNotAcquired)
			}
		}
	})
}

// CREATE INDEX CONCURRENTLY waits for the end of what has an older snapshot, as each session has that waits for its
// turn. These waits end before the minute is over.
func TestFair_CreateIndexConcurrently(t *testing.T) {
	t.Parallel()
	l := onPostgres(t, dbtest.Postgres, "pgx")
	l.forKey("k")
	l.hold(obtain(t, l.process(l.db.DSN), "k").Lock)
	l.queueUp("k", 1, l.process(l.db.DSN), l.process(l.db.DSN), l.process(l.db.DSN))
	l.db.DB.MustExecContext(t.Context(), "CREATE TABLE many (id INT)")
	indexed := check.Begin(func() error {
		return check.ErrorOf(l.db.DB.ExecContext(t.Context(), "CREATE INDEX CONCURRENTLY of_many ON many (id)"))
	})
	awaitThat(t, "the index is there", func() bool {
		_, wait := l.sessions()
		for _, session := range wait {
			var long bool
			must(t, l.db.DB.GetContext(t.Context(), &long, "SELECT COUNT(*) > 0 FROM pg_stat_activity WHERE pid = $1 AND clock_timestamp() - xact_start > INTERVAL '50 seconds'", session))
			if long {
				t.Fatal("a wait lasts until the end of its minute")
			}
		}
		select {
		case err := <-indexed:
			must(t, err)
			return true
		default:
			return false
		}
	})
	must(t, l.held.Unlock(t.Context()))
	l.waiting.Wait() // in what order is not said
	l.await(0)
}

// A candidate for a role stands by, for days it may be, in no session of its own: the one
// that the pool has for turns is for callers.
func TestFair_Candidates(t *testing.T) {
	t.Parallel()
	eachLine(t, func(l *line) {
		leads := make(chan struct{})
		var electors sync.WaitGroup
		ctx, cancel := context.WithCancel(l.Context())
		defer electors.Wait()
		defer cancel()
		run := func(r *sqllock.Registry, lead func(context.Context, *sqllock.Lease) error) {
			elector := check.Value(leader.New(r, "role", nil))(l)
			electors.Go(func() { _ = elector.Run(ctx, lead) }) // until ctx ends
		}
		run(l.process(l.db.DSN), func(ctx context.Context, _ *sqllock.Lease) error {
			close(leads)
			<-ctx.Done()
			return nil
		})
		<-leads
		proxy, dsn := wire.Through(l.T, l.db.DSN)
		small := l.over(unhurried(l.T), limited(l.db.OpenDSN(l, l.driver, dsn), 2), sqllock.RepositoryOptions{}, fair)
		proxy.Trips()
		run(small, func(context.Context, *sqllock.Lease) error { return nil })
		trips := 0
		awaitThat(l.T, "the candidate polls", func() bool {
			trips += proxy.Trips()
			return trips > 20
		})
		l.forKey("k")
		l.hold(obtain(l.T, l.process(l.db.DSN), "k").Lock)
		l.queueUp("k", 1, small)
		l.want(0)
	})
}

// The session of the process whose turn it is is ended by the server, or it is cut off: after seconds, without a
// word. The next one has the turn then, and the other one comes last.
func TestFair_EndOfTheTurn(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprintf("cut off %v", cut), func(t *testing.T) {
			t.Parallel()
			eachLine(t, func(l *line) {
				for !l.endTurn(cut) {
					l.Log("again: a session that waited has ended, too")
				}
			})
		})
	}
}

// endTurn returns false if the machine is too slow for a process to show the server within five seconds that it
// lives.
func (l *line) endTurn(cut bool) (alone bool) {
	l.Helper()
	proxy, dsn := wire.Through(l.T, l.db.DSN)
	l.forKey("k")
	l.hold(obtain(l.T, l.process(l.db.DSN), "k").Lock)
	l.queueUp("k", 1, l.process(dsn), l.process(l.db.DSN), l.process(l.db.DSN))
	has, wait := l.sessions()
	if cut {
		proxy.Freeze()
	} else {
		end := map[string]string{"postgres": "SELECT pg_terminate_backend(%d)", "mysql": "KILL %d"}[l.db.Name]
		must(l, check.ErrorOf(l.db.DB.ExecContext(l.Context(), fmt.Sprintf(end, has[0]))))
	}
	awaitThat(l.T, "the next one has the turn, and the first one queues again", func() bool {
		now, others := l.sessions()
		all := slices.Concat(now, others)
		alone = !slices.ContainsFunc(wait, func(one int) bool { return !slices.Contains(all, one) })
		return !alone || len(now) == 1 && slices.Contains(wait, now[0]) && len(others) == 2
	})
	if alone {
		l.want(1, 2, 0)
		return true
	}
	must(l, l.held.Unlock(l.Context()))
	l.waiting.Wait()
	l.await(0)
	return false
}

// A process that is cut off while it waits has the turn in its time, for seconds. Its caller does not wait for the
// server when it gives up.
func TestFair_CutOffWhileItWaits(t *testing.T) {
	t.Parallel()
	eachLine(t, func(l *line) {
		proxy, dsn := wire.Through(l.T, l.db.DSN)
		l.forKey("k")
		l.hold(obtain(l.T, l.process(l.db.DSN), "k").Lock)
		l.queueUp("k", 1, l.process(l.db.DSN))
		ctx, cancel := context.WithCancel(l.Context())
		defer cancel()
		lock, gaveUp := obtain(l.T, l.process(dsn), "k"), make(chan error, 1)
		go func() { gaveUp <- check.ErrorOf(lock.Lock(ctx)) }()
		l.await(2)
		l.queue(2, 1, obtain(l.T, l.process(l.db.DSN), "k").Lock)
		l.await(3)
		proxy.Freeze()
		l.want(0, 2)
		cancel()
		is(l, <-gaveUp, sqllock.ErrNotAcquired)
	})
}

// A caller that gives up while it waits for its turn, or whose registry is closed, returns at once and leaves no
// session in the queue.
func TestFair_GivingUp(t *testing.T) {
	t.Parallel()
	eachLine(t, func(l *line) {
		l.forKey("k")
		l.hold(obtain(l.T, l.process(l.db.DSN), "k").Lock)
		l.queueUp("k", 1, l.process(l.db.DSN), l.process(l.db.DSN))
		ctx, cancel := context.WithCancel(l.Context())
		closed := l.process(l.db.DSN)
		for _, c := range []struct {
			lock   lockFunc
			giveUp func()
			want   error
		}{
			{obtain(l.T, l.process(l.db.DSN), "k").Lock, cancel, sqllock.ErrNotAcquired},
			{obtain(l.T, closed, "k").Lock, func() { must(l, closed.Close(context.Background())) }, sqllock.ErrClosed},
		} {
			gaveUp := make(chan error, 1)
			waiting := ctx
			if ctx.Err() != nil {
				waiting = l.Context()
			}
			go func() { gaveUp <- check.ErrorOf(c.lock(waiting)) }()
			l.await(3)
			c.giveUp()
			is(l, <-gaveUp, c.want)
			l.await(2)
		}
		l.want(0, 1)
	})
}

// A pool of one connection is refused. In one of two there is a session for one key, whatever is over it: callers of
// another key wait out of turn, and an observer is told.
func TestFair_SmallPools(t *testing.T) {
	t.Parallel()
	eachLine(t, func(l *line) {
		one := repository(l.T, &dbtest.DB{DB: limited(l.db.Open(l), 1), Dialect: l.db.Dialect}, nil)
		is(l, check.ErrorOf(sqllock.NewRegistry(one, &fair)), sqllock.ErrInvalid)
		is(l, check.ErrorOf(obtain(l.T, newRegistry(l.T, one, &sqllock.RegistryOptions{NoRenew: true}), "k").WithFair(true).TryLock(l.Context())), sqllock.ErrInvalid)

		told := make(chan error, 16)
		pool := limited(l.db.Open(l), 2)
		small := l.over(unhurried(l.T), pool, sqllock.RepositoryOptions{}, fair)
		var first sync.WaitGroup
		for i := range 8 { // all at once: they do not keep each other from the two connections
			first.Go(func() {
				if lease, err := small.TryLock(l.Context(), fmt.Sprint(i)); err != nil {
					l.Error(err)
				} else if err := lease.Unlock(l.Context()); err != nil {
					l.Error(err)
				}
			})
		}
		first.Wait()
		other := l.process(l.db.DSN)
		l.forKey("b")
		l.hold(obtain(l.T, other, "b").Lock)
		l.queueUp("b", 1, small)
		a := check.Value(other.Lock(l.Context(), "a"))(l)
		same := l.over(l.Context(), pool, sqllock.RepositoryOptions{Observers: onFallbacks(func(reason error) { told <- reason })}, fair)
		l.queue(1, 1, obtain(l.T, same, "a").Lock)
		if reason := <-told; !strings.Contains(reason.Error(), "turn") {
			l.Error(reason)
		}
		must(l, a.Unlock(l.Context()))
		awaitThat(l.T, "a is acquired", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.got) == 1
		})
		l.want(1, 0)
	})
}

// A caller for which there was no session waits out of turn, and queues when there is one again.
func TestFair_QueuesAgain(t *testing.T) {
	t.Parallel()
	eachLine(t, func(l *line) {
		told := make(chan error, 16)
		pool, other := limited(l.db.Open(l), 2), l.process(l.db.DSN)
		observed := sqllock.RepositoryOptions{Observers: onFallbacks(func(reason error) { told <- reason })}
		same := l.over(unhurried(l.T), pool, observed, fair)
		l.forKey("b")
		l.hold(obtain(l.T, other, "b").Lock)
		l.queueUp("b", 1, l.over(unhurried(l.T), pool, sqllock.RepositoryOptions{}, fair))
		a := check.Value(other.Lock(l.Context(), "a"))(l)
		l.queue(1, 1, obtain(l.T, same, "a").Lock)
		l.Logf("out of turn: %v", <-told)
		must(l, l.held.Unlock(l.Context()))
		awaitThat(l.T, "b is acquired", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.got) == 1
		})
		l.forKey("a")
		l.await(1)
		must(l, a.Unlock(l.Context()))
		l.waiting.Wait()
		l.await(0)
	})
}

// A caller for which there was no session, and whose observer of that panics, keeps no later one out.
func TestFair_AFallbackThatPanics(t *testing.T) {
	t.Parallel()
	eachLine(t, func(l *line) {
		pool, other := limited(l.db.Open(l), 2), l.process(l.db.DSN)
		told := 0
		observed := sqllock.RepositoryOptions{Observers: append(onFallbacks(func(error) { panic("no session") }), onFallbacks(func(error) { told++ })...)}
		same := l.over(unhurried(l.T), pool, observed, fair)
		l.forKey("b")
		l.hold(obtain(l.T, other, "b").Lock)
		l.queueUp("b", 1, l.over(unhurried(l.T), pool, sqllock.RepositoryOptions{}, fair))
		a := check.Value(other.Lock(l.Context(), "a"))(l)
		func() {
			defer func() { check.Equal(l.T, "panic", recover(), any("no session")) }()
			_, _ = same.Lock(l.Context(), "a")
		}()
		check.Equal(l.T, "calls of the other observer", told, 1)
		check.Equal(l.T, "waiting", len(same.Waiting()), 0)
		must(l, a.Unlock(l.Context()))
		must(l, check.Value(same.TryLockFor(l.Context(), "a", time.Minute))(l).Unlock(l.Context()))
		must(l, l.held.Unlock(l.Context()))
		l.waiting.Wait()
	})
}

// Where the server has no room for the lock that a turn is, but for that of a row, a caller acquires out of turn.
// An observer is told once, and the error of a server that has room for neither names the setting.
func TestFair_NoRoomForTurns(t *testing.T) {
	t.Parallel()
	alone, db := watchedServers["postgres"].run(t)
	reasons := make(chan error, 100)
	pool := check.Value(sqlx.Connect("pgx", alone.DSN()))(t)
	t.Cleanup(func() { must(t, pool.Close()) })
	repository := check.Value(sqllock.NewRepository(unhurried(t), pool.DB, dialect.Postgres(), &sqllock.RepositoryOptions{
		Observers: onFallbacks(func(reason error) { reasons <- reason }),
	}))(t)
	registry := newRegistry(t, repository, &sqllock.RegistryOptions{Fair: true, DisableNames: true, NoRenew: true})
	lock := obtain(t, registry, "k")
	once(t, lock.TryLock)
	conn := check.Value(db.Conn(t.Context()))(t)
	defer conn.Close()
	if check.ErrorOf(conn.ExecContext(t.Context(), "SELECT COUNT(pg_advisory_lock(n)) FROM generate_series(1, 1000000) AS n")) == nil {
		t.Fatal("there is room for a million locks")
	}
	err := check.ErrorOf(lock.TryLock(t.Context()))
	is(t, err, sqllock.ErrDatabase)
	if !strings.Contains(err.Error(), "max_locks_per_transaction") {
		t.Error(err)
	}
	for n := 1; ; n++ {
		check.Value(conn.ExecContext(t.Context(), "SELECT pg_advisory_unlock($1)", n))(t)
		lease, err := lock.WithFair(false).TryLock(t.Context())
		if err != nil {
			continue
		}
		must(t, lease.Unlock(t.Context()))
		once(t, lock.TryLock)
		break
	}
	check.Equal(t, "fallbacks", len(reasons), 1)
	if reason := <-reasons; !strings.Contains(reason.Error(), "turn") {
		t.Error(reason)
	}
}

// Where sessions cannot queue, a fair lock is refused.
func TestFair_Refused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlitelock", "pgxlock, PgBouncer", "pqlock, PgBouncer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := byName(t, name)
			db := up(t, o.database)
			is(t, check.ErrorOf(o.open(t.Context(), db.DSN, openOptions{registry: fair})), sqllock.ErrInvalid)
			is(t, check.ErrorOf(obtain(t, o.opened(t, db.DSN, openOptions{}), "k").WithFair(true).TryLock(t.Context())), sqllock.ErrInvalid)
			r, err := sqllock.NewRegistry(repository(t, db, nil), &fair)
			if err == nil {
				_, err = r.Lock(t.Context(), "k")
			}
			is(t, err, sqllock.ErrInvalid)
		})
	}
}

// A pooler that gives a client a session for as long as it is connected keeps no settings of Open, and has turns:
// those that open the registry as fair have them as those that ask for them at a lock.
func TestFair_SessionPooling(t *testing.T) {
	t.Parallel()
	dbtest.OwnServers(t)
	scratch := check.Value(server.NewScratch())(t)
	t.Cleanup(func() { must(t, scratch.Remove()) })
	db := up(t, dbtest.PgBouncer)
	bouncer := check.Value(server.StartPgBouncerWith(t.Context(), filepath.Join(scratch.Dir, "sessions"), os.Getenv(server.PostgresVariable), "pool_mode = session"))(t)
	t.Cleanup(func() { must(t, bouncer.Stop()) })
	dsn := strings.Replace(bouncer.DSN(), "/postgres?", db.DSN[strings.LastIndex(db.DSN, "/"):strings.Index(db.DSN, "?")]+"?", 1)
	for _, name := range []string{"pgxlock", "pqlock"} {
		o := byName(t, name)
		for _, registry := range []sqllock.RegistryOptions{fair, {}} {
			once(t, obtain(t, o.opened(t, dsn, openOptions{registry: registry}), "k").WithFair(true).TryLock)
		}
	}
}

// Replicas that run the statements themselves would ask their own server whether a turn is free.
func TestFair_StatementsInTheBinaryLog(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]error{"STATEMENT": sqllock.ErrInvalid, "MIXED": nil} {
		w := watchedServers["mysql"]
		w.start = func(ctx context.Context, dir string) (*server.Server, error) {
			recipe, err := server.DurableMariaDB(ctx)
			if err != nil {
				return nil, err
			}
			return server.Start(ctx, recipe.With("--log-bin", "--server-id=1", "--binlog-format="+format), dir)
		}
		_, db := w.run(t)
		r := check.Value(sqllock.NewRepository(unhurried(t), db.DB, dialect.MySQL(), nil))(t)
		is(t, check.ErrorOf(sqllock.NewRegistry(r, &fair)), want)
	}
}

// The locks that are made of several rows are as fair as what their callers wait for: a key, or the row of the turn.
func TestFair_JointLocksPermitsAndWriters(t *testing.T) {
	t.Parallel()
	eachLine(t, func(l *line) {
		lockKey := check.Value(sqllock.SpringKeys("k"))(l)
		for key, lockOf := range map[string]func(*sqllock.Registry) lockFunc{
			"l": func(r *sqllock.Registry) lockFunc { return obtainAll(l.T, r, "k", "l").Lock }, // whose LOCK_KEY comes first
			lockKey + " permit turn": func(r *sqllock.Registry) lockFunc {
				s := check.Value(semaphore.New(r, "k", 1))(l)
				return func(ctx context.Context) (*sqllock.Lease, error) { return s.Acquire(ctx, 1) }
			},
			lockKey + " reader turn": func(r *sqllock.Registry) lockFunc {
				lock := check.Value(rwlock.New(r, "k"))(l)
				return lock.Lock
			},
		} {
			l.forKey(key)
			l.hold(lockOf(l.process(l.db.DSN)))
			for i := range 4 {
				l.queue(i, 1, lockOf(l.process(l.db.DSN)))
				if key == "l" {
					l.await(i + 1)
					continue
				}
				awaitThat(l.T, "the first one has the row of the turn", func() bool {
					_, has, err := repository(l.T, l.db, nil).Peek(l.Context(), key)
					must(l, err)
					return has
				})
				l.await(i)
			}
			l.want(0, 1, 2, 3)
		}
	})
}
