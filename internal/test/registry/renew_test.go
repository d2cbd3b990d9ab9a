package registry_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/observe"
)

// What one statement has renewed does not depend on the next: of more rows than one statement renews,
// one part fails, and the others go on.
func TestRenew_PartThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, leases := renewingInParts(t)
		var queries int
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && !m.Done {
				if queries++; queries%2 == 0 {
					return errGone
				}
			}
			return nil
		})
		time.Sleep(renewalTTL + time.Second)
		synctest.Wait()
		kept := 0
		for _, lease := range leases {
			if lease.Context().Err() == nil {
				kept++
			}
		}
		if kept < len(leases)-1 {
			t.Errorf("%d of %d leases were kept", kept, len(leases))
		}
		s.connector.Follow(nil)
	})
}

// The statements for very many leases are spread over the third of the time in which they are due. If a server
// is so slow that each takes a fifth of the time-to-live, no lease is lost: those that end first go first, and
// nothing that is in flight is sent again.
func TestRenew_ManyLeases(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, leases := renewingInParts(t)
		time.Sleep(renewalTTL)
		var mu sync.Mutex
		var times []time.Time
		var each time.Duration
		inFlight, most := 0, 0
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			mu.Lock()
			defer mu.Unlock()
			if m.Op == flaky.Query && !m.Done {
				times = append(times, time.Now())
				inFlight++
				most = max(most, inFlight)
				mu.Unlock()
				time.Sleep(each)
				mu.Lock()
				inFlight--
			}
			return nil
		})
		time.Sleep(renewalTTL)
		synctest.Wait()
		mu.Lock()
		if n := len(times); n < 6 || n > 7 {
			t.Errorf("%d statements", n)
		}
		for i := range len(times) - 1 {
			if pause := times[i+1].Sub(times[i]); pause < renewalTTL/7 {
				t.Errorf("two statements within %v", pause)
			}
		}
		times, each = nil, renewalTTL/5
		mu.Unlock()
		time.Sleep(3 * renewalTTL / 2)
		s.connector.Follow(nil)
		mu.Lock()
		if n := len(times); n > 10 || most > 2 {
			t.Errorf("%d statements, up to %d at once", n, most)
		}
		mu.Unlock()
		for _, lease := range leases {
			must(t, lease.Context().Err())
		}
		time.Sleep(renewalTTL) // for the statements that are in flight
	})
}

// Renewals that are answered too late leave rows without holders. To delete them must not
// delay the renewal of other leases.
func TestRenew_RowsOfLateRenewalsDelayNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		// Without tokens a deletion of one row is the only Exec.
		s.registry = newRegistry(t, newRepository(t, s.pool, &sqllock.RepositoryOptions{DisableFencing: true, Isolation: sqllock.Autocommit}),
			&sqllock.RegistryOptions{TTL: renewalTTL})
		began := time.Now()
		s.tryAll(40, func(_ *sqllock.Lease, err error) { must(t, err) })
		const lastTry = renewalTTL * 26 / 30 // of the first leases, which end half a second before renewalTTL
		s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
			switch since := time.Since(began); {
			case m.Op == flaky.Exec && !m.Done: // deletes one row
				<-ctx.Done()
				return ctx.Err()
			case m.Op == flaky.Query && !m.Done && since < lastTry:
				return errGone
			case m.Op == flaky.Query && !m.Done && since < renewalTTL:
				time.Sleep(renewalTTL - since)
			}
			return nil
		})
		time.Sleep(renewalTTL - 100*time.Millisecond)
		lease := try(t, obtain(t, s.registry, "another"))
		time.Sleep(3 * renewalTTL)
		must(t, lease.Context().Err())
		s.connector.Follow(nil)
	})
}

// A renewal whose answer comes when the lease is over is no renewal: the row, which it has made to last,
// goes. So does one whose answer comes when the driver has been left behind.
func TestRenew_LateAnswerIsALoss(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func(*sqllock.Lease, <-chan struct{}){
		"late":      func(lease *sqllock.Lease, _ <-chan struct{}) { <-lease.Context().Done() },
		"very late": func(_ *sqllock.Lease, left <-chan struct{}) { <-left },
	} {
		runInBubble(t, name, func(t *testing.T) {
			s, rival := lateFixture(t, sqllock.Autocommit)
			lease, left := held(s), make(chan struct{})
			s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
				if m.N == 1 && m.Done {
					late(lease, left)
				}
				return nil
			})
			is(t, lease.Renew(t.Context()), sqllock.ErrLockLost)
			close(left)
			synctest.Wait()
			must(t, try(t, rival).Unlock(t.Context()))
		})
	}
}

// An answer that comes in the very instant in which the lease ends, whether its timer has run by then or
// not, is late as well.
func TestRenew_LateAnswerBeforeTheTimer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _ := renewing(t, sqllock.RegistryOptions{})
		rival := obtain(t, newRegistry(t, newRepository(t, s.db.DB, nil), nil), "k")
		for range 20 {
			lease := held(s)
			s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
				if m.Op == flaky.Query && m.Done {
					time.Sleep(time.Until(lease.Deadline()))
				}
				return nil
			})
			<-lease.Context().Done()
			synctest.Wait()
			s.connector.Follow(nil)
			must(t, check.Value(rival.TryLockFor(t.Context(), time.Second))(t).Unlock(t.Context()))
		}
	})
}

// A heartbeat that was sent before a renewal for longer, and arrives after it, leaves
// the row as it is.
func TestRenew_LateHeartbeatShortensNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		lease := held(s)
		late := holdBack(s, flaky.Query)
		<-late.reached
		must(t, lease.RenewFor(t.Context(), 10*renewalTTL))
		close(late.let)
		time.Sleep(renewalTTL)
		row, ok, err := s.repository.Peek(t.Context(), "k")
		if err != nil || !ok || row.Left < 9*renewalTTL || p.good.Load() == 0 {
			t.Errorf("%+v, %v, %v; %d renewals", row, ok, err, p.good.Load())
		}
		time.Sleep(time.Until(lease.Deadline()) - time.Second)
		must(t, lease.Context().Err())
		must(t, lease.Unlock(t.Context()))
	})
}

// If the answer to a renewal for longer is lost, the row may last long after the lease.
// It does not keep this process out.
func TestRenew_ForLongerWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		s.lock = obtain(t, newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: renewalTTL, NoRenew: true}), "k")
		lease := held(s)
		end := lease.Deadline()
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Done {
				return errGone
			}
			return nil
		})
		is(t, lease.RenewFor(t.Context(), 10*renewalTTL), sqllock.ErrDatabase)
		s.connector.Follow(nil)
		<-lease.Context().Done()
		synctest.Wait() // the row is noted after the context has ended
		if !errors.Is(context.Cause(lease.Context()), sqllock.ErrLockLost) || time.Since(end) != 0 {
			t.Error(context.Cause(lease.Context()), time.Since(end))
		}
		row, ok, err := s.repository.Peek(t.Context(), "k")
		if err != nil || !ok || row.Left < 9*renewalTTL {
			t.Fatalf("%+v, %v, %v", row, ok, err)
		}
		must(t, held(s).Unlock(t.Context()))
	})
}

// The settings of a handle can be combined in whatever order, and a lease keeps those that it was acquired with.
func TestRenew_OfOneLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const most = 5 * renewalTTL
		p := new(renewalCount)
		registry := newRegistry(t, newRepository(t, migrated(t).DB, nil), &sqllock.RegistryOptions{TTL: renewalTTL, MaxHold: most, Observers: onRenewals(p.count), NoRenew: true})
		lock := obtain(t, registry, "k")
		for _, l := range []*sqllock.JdbcLock{lock.WithAutoRenew(true).WithTTL(renewalTTL / 2), lock.WithTTL(renewalTTL / 2).WithAutoRenew(true)} {
			*p = renewalCount{}
			on := locked(t, l)
			time.Sleep(most - time.Second)
			must(t, on.Context().Err())
			if p.leases.Load() != 1 || p.good.Load() < 20 {
				t.Errorf("%d renewals of %d leases", p.good.Load(), p.leases.Load())
			}
			inner := check.Value(lock.WithAutoRenew(false).WithTTL(10 * renewalTTL).Lock(on.Context()))(t)
			if left := time.Until(inner.Deadline()); left > renewalTTL/2 {
				t.Errorf("%v left after entering it with another time-to-live", left)
			}
			must(t, inner.Unlock(t.Context()))
			must(t, on.Unlock(t.Context()))
		}
	})
}

// MySQL counts a row that was renewed to the instant it had already as unchanged.
func TestRenew_CountOfZeroIsLookedUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.MySQL(), sqllock.Autocommit)
		for _, count := range []int{1, 0} {
			mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(0))
			mock.ExpectQuery("SELECT COUNT").WillReturnRows(sqlmock.NewRows([]string{"n"}).AddRow(count))
			renewed := check.Value(r.Renew(t.Context(), "k", "holder", ttl))(t)
			if renewed != (count == 1) {
				t.Fatalf("renewed %v with %d rows", renewed, count)
			}
		}
	})
}

// Calls end with the lease's deadline, as it was when they were sent. If AutoRenew has
// prolonged the lease meanwhile, that is no end of the caller's context. (The simulation
// found an error of no kind.)
func TestRenew_OvertakenCallIsADatabaseError(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *fixture, *sqllock.Lease) error{
		"Renew": func(ctx context.Context, s *fixture, lease *sqllock.Lease) error {
			s.connector.Follow(firstHangs)
			return lease.Renew(ctx)
		},
		"Guard": func(ctx context.Context, s *fixture, lease *sqllock.Lease) error {
			tx := check.Value(s.pool.BeginTxx(ctx, nil))(s.T)
			defer func() { _ = tx.Rollback() }()
			s.connector.Follow(firstHangs)
			return lease.Guard(ctx, tx)
		},
	}
	for name, call := range calls {
		runInBubble(t, name, func(t *testing.T) {
			s, p := renewing(t, sqllock.RegistryOptions{})
			lease := held(s)
			err := call(t.Context(), s, lease)
			must(t, lease.Context().Err())
			if p.good.Load() < 2 {
				t.Fatalf("%d renewals: the call was not overtaken", p.good.Load())
			}
			is(t, err, sqllock.ErrDatabase, context.DeadlineExceeded)
			check.IsNot(t, err, sqllock.ErrLockLost)
			must(t, lease.Unlock(t.Context()))
		})
	}
}

// firstHangs has the first operation wait until its context ends.
func firstHangs(ctx context.Context, m flaky.Moment) error {
	if m.N > 1 || m.Done {
		return nil
	}
	<-ctx.Done()
	time.Sleep(time.Millisecond) // whatever ends in the same instant has ended
	return ctx.Err()
}

// The same for what is reported: while a row's own renewal waits for it, the caller prolongs the
// lease, and the registry learns that the row's renewal has had no answer.
func TestRenew_OvertakenRenewalIsADatabaseError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var errs []error
		lease, mock, passedOver := renewedBeside(t, &errs)
		passedOver() // after a third of the TTL, and again after 23/30
		mock.ExpectExec("UPDATE").WillDelayFor(time.Hour).WillReturnResult(sqlmock.NewResult(0, 1))
		mock.ExpectQuery("WITH").WillDelayFor(renewalTTL / 30).WillReturnError(errGone)
		mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1)) // the caller's
		passedOver()
		mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnResult(sqlmock.NewResult(0, 1))
		began := lease.Deadline()
		time.Sleep(renewalTTL * 22 / 30)
		must(t, lease.Renew(t.Context()))
		if extended := lease.Deadline().Sub(began); extended < renewalTTL/2 {
			t.Errorf("extended by %v", extended)
		}
		time.Sleep(renewalTTL * 9 / 30)
		synctest.Wait()
		if len(errs) != 3 || !errors.Is(errs[2], sqllock.ErrDatabase) || !errors.Is(errs[2], context.DeadlineExceeded) {
			t.Errorf("the renewals reported %v", errs)
		}
		must(t, lease.Context().Err())
		must(t, lease.Unlock(t.Context()))
	})
}

var (
	errLockTimeout = &pq.Error{Code: "55P03", Message: "canceling statement due to lock timeout"}
	rowIDs         = []string{"lock_key", "client_id"}
)

// renewedBeside returns a lease from a mocked PostgreSQL that is renewed automatically, with the
// errors that are reported, and a function that expects a renewal of all leases that passes
// over its row.
func renewedBeside(t *testing.T, errs *[]error) (lease *sqllock.Lease, mock sqlmock.Sqlmock, passedOver func()) {
	t.Helper()
	r, mock := mocked(t, dialect.Postgres(), sqllock.Serializable)
	registry := newRegistry(t, r, &sqllock.RegistryOptions{
		TTL: renewalTTL, Observers: onRenewals(func(e observe.Renewal) { *errs = append(*errs, e.Err) }),
	})
	mock.ExpectBegin()
	mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
	mock.ExpectCommit()
	lease = check.Value(obtain(t, registry, "k").TryLock(t.Context()))(t)
	return lease, mock, func() {
		mock.ExpectQuery("WITH").WillReturnRows(sqlmock.NewRows(rowIDs))
		mock.ExpectQuery("SELECT").WillReturnRows(sqlmock.NewRows(rowIDs).AddRow(lockKeyOf(t, lease), lease.Holder()))
	}
}

// lockKeyOf returns the LOCK_KEY of the default KeyMapper.
func lockKeyOf(t *testing.T, lease *sqllock.Lease) string {
	t.Helper()
	return check.Value(sqllock.SpringKeys(lease.Key()))(t)
}

// The statement that renews all leases passes over rows that another transaction has locked,
// as a refused attempt to acquire does. Such a row is renewed by a statement of its own that
// waits for it, long before the next renewal of all leases.
func TestRenew_LockedRowIsRenewedAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var errs []error
		lease, mock, passedOver := renewedBeside(t, &errs)
		passedOver()
		mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1))
		began := lease.Deadline()
		time.Sleep(renewalTTL/3 + time.Millisecond)
		synctest.Wait()
		if extended := lease.Deadline().Sub(began); extended < renewalTTL/3 {
			t.Errorf("extended by %v", extended)
		}
		if len(errs) != 1 || errs[0] != nil {
			t.Errorf("the renewals reported %v", errs)
		}

		passedOver()
		for range 4 { // it takes longer than a try
			mock.ExpectExec("UPDATE").WillReturnError(errLockTimeout)
		}
		mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1))
		began = lease.Deadline()
		time.Sleep(renewalTTL * 3 / 5)
		synctest.Wait()
		if len(errs) != 2 || !errors.Is(errs[1], sqllock.ErrPinned) {
			t.Errorf("the renewals reported %v", errs)
		}
		if extended := lease.Deadline().Sub(began); extended < renewalTTL/3 {
			t.Errorf("extended by %v", extended)
		}
		mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnResult(sqlmock.NewResult(0, 1))
		must(t, lease.Unlock(t.Context()))
	})
}

// Nor does a row whose renewal the server refuses end the leases of others.
func TestRenew_RefusedByTheServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := virtual.Migrated(t, dialect.Spring7)
		r := newRegistry(t, newRepository(t, db.DB, &sqllock.RepositoryOptions{Keys: sqllock.PlainKeys}), &sqllock.RegistryOptions{TTL: ttl})
		leases := make(map[string]*sqllock.Lease)
		for i := range 100 {
			key := fmt.Sprint("k", i)
			leases[key] = tryKey(t, r, key)
		}
		joint, err := r.ObtainAll("a", "b", "c")
		must(t, err)
		leases["joint"], err = joint.TryLock(t.Context())
		must(t, err)
		db.DB.MustExecContext(t.Context(), "CREATE TRIGGER refuse BEFORE UPDATE ON INT_LOCK WHEN OLD.LOCK_KEY IN ('k40', 'k70') BEGIN SELECT RAISE(ABORT, 'bad'); END")
		time.Sleep(2 * ttl)
		for key, lease := range leases {
			if refused := key == "k40" || key == "k70"; refused != (lease.Context().Err() != nil) {
				t.Errorf("%s: %v", key, lease.Context().Err())
			}
		}
	})
}

// A renewalCount counts the renewals, and has the last error.
type renewalCount struct {
	good, bad, leases atomic.Int64
	last              atomic.Pointer[error]
}

func (p *renewalCount) count(e observe.Renewal) {
	p.leases.Store(int64(e.Leases))
	if e.Err != nil {
		p.bad.Add(1)
		p.last.Store(&e.Err)
	} else {
		p.good.Add(1)
	}
}

// renewing returns a fixture whose registry renews by itself.
func renewing(t *testing.T, opts sqllock.RegistryOptions) (*fixture, *renewalCount) {
	t.Helper()
	s, p := newFixture(t, sqllock.Autocommit), new(renewalCount)
	opts.TTL, opts.Observers = renewalTTL, onRenewals(p.count)
	s.registry = newRegistry(t, s.repository, &opts)
	s.lock = obtain(t, s.registry, "k")
	return s, p
}

// renewingInParts is renewing with ten leases in the part that one statement renews, and one lease in another.
func renewingInParts(t *testing.T) (*fixture, []*sqllock.Lease) {
	t.Helper()
	const perStatement, perLease = 100, 10
	s := newFixture(t, sqllock.Autocommit)
	ctx := locktable.WithMaxRenewals(t.Context(), perStatement)
	s.repository = check.Value(sqllock.NewRepository(ctx, s.pool.DB, dialect.SQLite(), &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit}))(t)
	s.registry = newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: renewalTTL})
	leases := make([]*sqllock.Lease, perStatement/perLease+1)
	for i := range leases {
		keys := make([]string, perLease)
		for j := range keys {
			keys[j] = fmt.Sprint(i, "/", j)
		}
		leases[i] = try(t, obtainAll(t, s.registry, keys...))
	}
	return s, leases
}

// A lease that was renewed in vain, and whose Unlock hangs, is left out: the renewer does not go round for it without a pause, in
// which virtual time would stand still.
func TestRenew_PausesBesideAHangingRelease(t *testing.T) {
	spins := time.AfterFunc(time.Minute, func() { panic("virtual time stands still: the renewer spins") })
	defer spins.Stop()
	type slow struct{}
	inBubble(t, func(t *testing.T) {
		s, leases := renewingInParts(t)
		var renewals atomic.Int64
		s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
			switch {
			case m.Done:
				return nil
			case ctx.Value(slow{}) != nil:
				time.Sleep(renewalTTL)
				return errGone
			default:
				renewals.Add(1)
				return errStop
			}
		})
		time.Sleep(renewalTTL/3 + time.Millisecond) // the first part has failed
		released := check.Begin(func() error { return leases[0].Unlock(context.WithValue(t.Context(), slow{}, true)) })
		time.Sleep(renewalTTL - renewalTTL/3)
		if n := renewals.Load(); n < 3 || n > 100 {
			t.Errorf("%d renewals beside a release that hangs", n)
		}
		s.connector.Follow(nil)
		is(t, <-released, sqllock.ErrDatabase)
		time.Sleep(3 * renewalTTL) // what hangs has ended
	})
}

// Reads and acquisitions that have no answer, behind a driver that does not look at its context, leave a connection
// of a pool of two or more to renewals, whatever their number.
func TestRenew_WaitsForNoOtherConnection(t *testing.T) {
	t.Parallel()
	type slow struct{}
	for _, connections := range []int{2, 3, 5} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := renewing(t, sqllock.RegistryOptions{})
			s.pool.SetMaxOpenConns(connections)
			lease := held(s)
			another := newRepository(t, s.pool, nil) // over the same pool
			began := time.Now()
			s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
				if !m.Done && (ctx.Value(slow{}) != nil || m.Op == flaky.Begin) {
					time.Sleep(time.Until(began.Add(4 * renewalTTL)))
				}
				return nil
			})
			reading := context.WithValue(t.Context(), slow{}, true)
			for i := range 10 {
				go func() { _, _, _ = s.repository.Peek(reading, "k") }()
				go func() { _, _, _ = another.Peek(reading, "k") }()
				go func() { _, _ = another.Acquire(t.Context(), fmt.Sprint(i), another.NewHolder(), renewalTTL) }()
			}
			time.Sleep(3 * renewalTTL)
			lost := lease.Context().Err()
			time.Sleep(2 * renewalTTL) // for those that hang
			must(t, lost)
			must(t, lease.Unlock(t.Context()))
		})
	}
}

// Renewals belong to the lease, not to the caller that acquired it, whose context may end.
func TestRenew_EachThirdOfTheTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		lease := check.Value(s.lock.Lock(ctx))(t)
		time.Sleep(8*renewalTTL + time.Second)
		must(t, lease.Context().Err())
		cancel()
		time.Sleep(2 * renewalTTL)
		if good := p.good.Load(); good != 30 || p.bad.Load() != 0 || time.Until(lease.Deadline()) <= 0 {
			t.Errorf("%d renewals in ten times-to-live, %v left", good, time.Until(lease.Deadline()))
		}
		must(t, lease.Unlock(ctx))
		time.Sleep(renewalTTL)
		check.Equal(t, "renewals after Unlock", p.good.Load(), 30)
	})
}

// One statement renews all, so that a thousand leases cost what one does.
func TestRenew_OneStatementForAll(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		var mu sync.Mutex
		var leases []*sqllock.Lease
		s.tryAll(200, func(lease *sqllock.Lease, err error) {
			mu.Lock()
			defer mu.Unlock()
			must(t, err)
			leases = append(leases, lease)
		})
		s.connector.Follow(nil) // count from here
		time.Sleep(renewalTTL/3 + time.Second)
		if n := s.connector.Count(); n != 1 || p.good.Load() != 1 || p.leases.Load() != 200 {
			t.Errorf("%d statements for %d leases in %d renewals", n, p.leases.Load(), p.good.Load())
		}
		for _, lease := range leases {
			must(t, lease.Context().Err())
		}
	})
}

func TestRenew_MaxHoldEndsALease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const most = renewalTTL * 10 / 3
		s, p := renewing(t, sqllock.RegistryOptions{MaxHold: most})
		began := time.Now()
		lease := held(s)
		<-lease.Context().Done()
		check.Equal(t, "ended after", time.Since(began), most)
		is(t, lease.Unlock(t.Context()), sqllock.ErrLockLost)
		must(t, check.ErrorOf(s.db.DB.ExecContext(t.Context(), "DELETE FROM INT_LOCK"))) // it has not expired yet
		lease = held(s)
		time.Sleep(most - renewalTTL)
		must(t, lease.Renew(t.Context())) // MaxHold does not limit Renew
		time.Sleep(renewalTTL - 2*time.Second)
		must(t, lease.RenewFor(t.Context(), 10*renewalTTL)) // nor RenewFor, which no renewal shortens
		end := lease.Deadline()
		check.Equal(t, "left", time.Until(end), 10*renewalTTL-500*time.Millisecond)
		good := p.good.Load()
		time.Sleep(9 * renewalTTL)
		must(t, lease.Context().Err())
		if n := p.good.Load() - good; n != 0 || !lease.Deadline().Equal(end) {
			t.Errorf("%d renewals, the deadline was moved by %v", n, lease.Deadline().Sub(end))
		}
		must(t, lease.Unlock(t.Context()))
	})
}

// A holder that enters the lock again and again does not keep it for longer than MaxHold,
// whatever kind of lease it has.
func TestRenew_MaxHoldCountsForEntries(t *testing.T) {
	t.Parallel()
	const most = renewalTTL * 10 / 3
	for name, lockOf := range map[string]func(*fixture) method{
		"renewed":     func(s *fixture) method { return s.lock.Lock },
		"not renewed": func(s *fixture) method { return s.lock.WithAutoRenew(false).Lock },
		"joint":       func(s *fixture) method { return obtainAll(s.T, s.registry, "k", "l").Lock },
		"reader":      func(s *fixture) method { return readWrite(s).RLock },
		"writer":      func(s *fixture) method { return readWrite(s).Lock },
		"handed on": func(s *fixture) method {
			first, next := held(s), new(sqllock.Lease)
			ended := check.Begin(func() (err error) {
				next, err = s.lock.Lock(s.Context())
				return err
			})
			synctest.Wait()
			return func(ctx context.Context) (*sqllock.Lease, error) {
				if first == nil {
					return s.lock.Lock(ctx)
				}
				must(s.T, first.Unlock(ctx))
				first = nil
				return next, <-ended
			}
		},
		"guarded": func(s *fixture) method {
			return func(ctx context.Context) (*sqllock.Lease, error) {
				lease, err := s.lock.Lock(ctx)
				if err != nil {
					return nil, err
				}
				tx := check.Value(s.db.DB.BeginTx(context.WithoutCancel(ctx), nil))(s.T)
				must(s.T, lease.Guard(ctx, tx))
				return lease, tx.Commit()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, _ := renewing(t, sqllock.RegistryOptions{MaxHold: most, HandOff: name == "handed on"})
				lock := lockOf(s)
				began := time.Now()
				lease := check.Value(lock(t.Context()))(t)
				var err error
				for entered := lease; err == nil && time.Since(began) < 3*most; {
					time.Sleep(renewalTTL / 10)
					if entered, err = lock(lease.Context()); err == nil {
						must(t, entered.Unlock(t.Context()))
					}
				}
				is(t, err, sqllock.ErrLockLost)
				<-lease.Context().Done()
				if took := time.Since(began); took < most || took > most+renewalTTL/10 {
					t.Errorf("the lease ended after %v", took)
				}
				is(t, lease.Unlock(t.Context()), sqllock.ErrLockLost)
			})
		})
	}
}

// One failed renewal loses nothing; an outage that outlasts the lease ends its
// context in time, and is reported.
func TestRenew_Failures(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		lease := held(s)
		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		time.Sleep(renewalTTL/3 + renewalTTL/6) // the first fails, and some more
		s.connector.Follow(nil)
		failed := p.bad.Load()
		time.Sleep(renewalTTL)
		if p.good.Load() < 2 || failed < 2 {
			t.Errorf("%d good, %d bad", p.good.Load(), failed)
		}
		must(t, lease.Context().Err())

		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		end := lease.Deadline()
		<-lease.Context().Done()
		if !errors.Is(context.Cause(lease.Context()), sqllock.ErrLockLost) || time.Since(end) > renewalTTL/3 {
			t.Error(context.Cause(lease.Context()), time.Since(end))
		}
		s.connector.Follow(nil)
		is(t, lease.Unlock(t.Context()), sqllock.ErrLockLost)
	})
}

// An answer that is no longer waited for is still good if the lease lasts.
func TestRenew_LateAnswerWithinTheLeaseCounts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		lease := held(s)
		began := lease.Deadline()
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if !m.Done {
				time.Sleep(renewalTTL * 2 / 5) // longer than a try may take
			}
			return nil
		})
		time.Sleep(renewalTTL - time.Second)
		s.connector.Follow(nil)
		if p.bad.Load() == 0 || !lease.Deadline().After(began) {
			t.Errorf("%d tries failed, %v left", p.bad.Load(), time.Until(lease.Deadline()))
		}
		time.Sleep(renewalTTL)
		must(t, lease.Context().Err())
		must(t, lease.Unlock(t.Context()))
	})
}

// Close does not wait for the next beat, and ends one that is under way.
func TestRenew_EndsWithClose(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		held(s)
		began := time.Now()
		must(t, s.registry.Close(t.Context()))
		check.Equal(t, "Close took", time.Since(began), 0)
		time.Sleep(renewalTTL)
		if p.good.Load()+p.bad.Load() != 0 {
			t.Error("renewed after Close")
		}
	})
	runInBubble(t, "UnderWay", func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		held(s)
		late := holdBack(s, flaky.Query)
		<-late.reached
		time.AfterFunc(time.Second, func() { close(late.let) })
		must(t, s.registry.Close(t.Context()))
		if p.good.Load()+p.bad.Load() != 0 {
			t.Error("a renewal was reported that Close has ended")
		}
		time.Sleep(2 * time.Second) // for the driver, which does not look at its context
	})
}

// A renewal that finds the row gone ends the lease. One that meets the holder's own Unlock
// does not.
func TestRenew_MeetsUnlock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		lease := held(s)
		late := holdBack(s, flaky.Query)
		<-late.reached
		must(t, lease.Unlock(t.Context()))
		close(late.let)
		time.Sleep(renewalTTL)
		if !errors.Is(context.Cause(lease.Context()), context.Canceled) || p.good.Load() != 1 {
			t.Error(context.Cause(lease.Context()), p.good.Load())
		}
		must(t, lease.Unlock(t.Context()))
	})
}

// The error of a lost lease says why it is lost. An outage that was over before is no reason, and it is no error of the database.
func TestLease_LossSaysWhy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts sqllock.RegistryOptions
		lose func(*fixture)
		want string
	}{
		"not renewed": {sqllock.RegistryOptions{}, func(*fixture) {}, "its time-to-live of " + renewalTTL.String() + " ran out, and nothing renews it"},
		"MaxHold":     {sqllock.RegistryOptions{MaxHold: 2 * renewalTTL}, func(*fixture) {}, "MaxHold is over"},
		"removed": {sqllock.RegistryOptions{}, func(s *fixture) {
			must(s.T, check.ErrorOf(s.db.DB.ExecContext(s.Context(), "DELETE FROM INT_LOCK")))
		}, "its row was deleted, or another process has taken it over"},
		"outage": {sqllock.RegistryOptions{}, func(s *fixture) {
			s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		}, "it was not renewed in time: database error: "},
		"removed after an outage": {sqllock.RegistryOptions{}, func(s *fixture) {
			s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
			time.Sleep(renewalTTL / 2)
			s.connector.Follow(nil)
			time.Sleep(renewalTTL)
			must(s.T, check.ErrorOf(s.db.DB.ExecContext(s.Context(), "DELETE FROM INT_LOCK")))
		}, "its row was deleted, or another process has taken it over"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, _ := renewing(t, test.opts)
				if name == "not renewed" {
					s.lock = s.lock.WithAutoRenew(false)
				}
				lease := held(s)
				test.lose(s)
				<-lease.Context().Done()
				s.connector.Follow(nil)
				err := lease.Unlock(t.Context())
				is(t, err, sqllock.ErrLockLost)
				check.IsNot(t, err, sqllock.ErrDatabase)
				check.Contains(t, err.Error(), `sqllock: lock lost: "k" (`, "): "+test.want)
				other := check.ErrorOf(s.repository.Acquire(lease.Context(), "other", "holder", time.Minute))
				is(t, other, sqllock.ErrLockLost)
				check.Equal(t, other.Error(), strings.Count(other.Error(), "sqllock: "), 1)
			})
		})
	}
}
