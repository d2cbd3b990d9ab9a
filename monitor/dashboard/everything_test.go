package dashboard

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/leader"
)

var must = check.Must

const ttl = time.Minute

// errGone is what a database that fails returns.
var errGone = errors.New("gone")

// A stage is a registry whose database fails on demand, beside another process.
type stage struct {
	*testing.T
	network         *flaky.Connector
	pool            *sql.DB
	repository      *sqllock.Repository
	registry, other *sqllock.Registry
}

// newStage returns a stage in virtual time.
func newStage(t *testing.T, opts sqllock.RegistryOptions) *stage {
	t.Helper()
	db := virtual.Migrated(t, dialect.Spring7)
	s := &stage{T: t, network: flaky.New(db.DB.Driver(), db.DSN)}
	s.pool = sql.OpenDB(s.network)
	t.Cleanup(func() { must(t, s.pool.Close()) })
	open := func(pool *sql.DB, opts sqllock.RegistryOptions) *sqllock.Registry {
		repository := check.Value(sqllock.NewRepository(t.Context(), pool, dialect.SQLite(), nil))(t)
		opts.TTL = ttl
		registry := check.Value(sqllock.NewRegistry(repository, &opts))(t)
		t.Cleanup(func() { must(t, registry.Close(context.Background())) })
		return registry
	}
	s.registry, s.other = open(s.pool, opts), open(db.DB.DB, sqllock.RegistryOptions{})
	s.repository = s.registry.Repository()
	return s
}

// everything has each thing happen once that is measured. It returns while two locks are held, one of
// which is waited for, and the process leads. stop ends that.
func everything(t *testing.T, observers ...*observe.Observer) (s *stage, stop func()) {
	t.Helper()
	s = newStage(t, sqllock.RegistryOptions{HandOff: true, Observers: observers, NoRenew: true})
	s.acquisitions()
	s.renewals()
	for _, o := range observers {
		runJob(s.Context(), o)
	}
	return s, s.current()
}

// runJob tells an observer of a job that has run for a second, has failed at once, and was skipped.
func runJob(ctx context.Context, o *observe.Observer) {
	began := time.Unix(1e9, 0)
	for _, e := range []observe.JobRun{
		{Outcome: observe.JobFailed, Began: began, Err: errGone},
		{Outcome: observe.JobRan, Began: began, Took: time.Second},
		{Outcome: observe.JobSkipped, Err: sqllock.ErrNotAcquired},
	} {
		e.Job = "report\xff"
		o.JobRun(ctx, e)
	}
}

// acquisitions has each outcome, and each end of a lease but Close.
func (s *stage) acquisitions() {
	s.Helper()
	holder := check.Value(s.other.Lock(s.Context(), "held"))(s.T)
	_, _ = s.registry.TryLock(s.Context(), "held")
	_, _ = s.registry.TryLockFor(s.Context(), "held", time.Second)
	ctx, cancel := context.WithCancel(s.Context())
	time.AfterFunc(time.Second, cancel)
	_, _ = s.registry.Lock(ctx, "held")
	must(s.T, holder.Unlock(s.Context()))

	s.network.Follow(func(context.Context, flaky.Moment) error { return errGone })
	_, _ = s.registry.Lock(s.Context(), "error")
	s.network.Follow(nil)

	lease := check.Value(s.registry.Lock(s.Context(), "taken"))(s.T)
	must(s.T, check.ErrorOf(s.repository.Delete(s.Context(), "taken", lease.Holder())))
	_, _ = s.registry.Lock(lease.Context(), "taken")

	lease = check.Value(s.registry.Lock(s.Context(), "expired"))(s.T)
	<-lease.Context().Done()

	lease = check.Value(s.registry.Lock(s.Context(), "handed on"))(s.T)
	time.AfterFunc(10*time.Millisecond, func() { _ = lease.Unlock(s.Context()) })
	must(s.T, check.Value(s.registry.Lock(s.Context(), "handed on"))(s.T).Unlock(s.Context()))
}

// renewals has one renewal succeed, and one fail.
func (s *stage) renewals() {
	s.Helper()
	lock := check.Value(s.registry.Obtain("renewed"))(s.T)
	lease := check.Value(lock.WithAutoRenew(true).Lock(s.Context()))(s.T)
	time.Sleep(ttl/3 + time.Second)
	s.network.Follow(func(context.Context, flaky.Moment) error { return errGone })
	time.Sleep(ttl / 3)
	s.network.Follow(nil)
	time.Sleep(ttl / 15)
	must(s.T, lease.Unlock(s.Context()))
}

// current is what goes on when the metrics are read.
func (s *stage) current() (stop func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	elector := check.Value(leader.New(s.registry, "scheduler", nil))(s.T)
	led, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = elector.Run(ctx, func(ctx context.Context, _ *sqllock.Lease) error {
			close(led)
			<-ctx.Done()
			return nil
		})
	}()
	<-led
	standby := check.Value(leader.New(s.registry, "scheduler", nil))(s.T)
	standing, retire := context.WithCancel(s.Context())
	stoodBy := make(chan struct{})
	go func() { // a candidate, which is no waiter
		defer close(stoodBy)
		_ = standby.Run(standing, func(ctx context.Context, _ *sqllock.Lease) error { return ctx.Err() })
	}()
	lease := check.Value(s.registry.Lock(s.Context(), "current"))(s.T)
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_, _ = s.registry.Lock(ctx, "current")
	}()
	synctest.Wait()
	return func() {
		retire()
		<-stoodBy // the leader would hand its lock on
		cancel()
		<-ended
		<-waited
		must(s.T, lease.Unlock(s.Context()))
	}
}
