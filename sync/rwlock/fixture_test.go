package rwlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	fixtures "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/sync/rwlock"
)

func TestMain(m *testing.M) { testmain.Run(m) }

const (
	ttl     = 10 * time.Second
	key     = "prices"
	lockKey = "afae32ef-e0f8-3fec-a3f9-6b377b768b33" // its LOCK_KEY, with which the keys of its rows begin
	turn    = lockKey + " reader turn"
)

// A fixture adds read-write locks to the common one.
type fixture struct{ *fixtures.Fixture }

var (
	bubbles = fixtures.Bubbles[*fixture](func(f *fixtures.Fixture) *fixture { return &fixture{f} })

	inBubble, runInBubble = bubbles.In, bubbles.Run
)

// A process has a registry of its own, and the lock that all tests are about.
type process struct {
	rw         *rwlock.Lock
	f          *fixture
	registry   *sqllock.Registry
	repository *sqllock.Repository
	network    *flaky.Connector // its statements follow a plan
}

// process returns a process with default settings.
func (f *fixture) process() *process {
	f.Helper()
	return f.processWith(sqllock.RegistryOptions{TTL: ttl, NoRenew: true})
}

// rarePoller returns a process that polls once in 0.25 to 1 s, for tests in which it waits for long: a poll
// takes processor time.
func (f *fixture) rarePoller() *process {
	f.Helper()
	return f.processWith(sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: time.Second, NoRenew: true})
}

func (f *fixture) processWith(opts sqllock.RegistryOptions) *process {
	f.Helper()
	return f.processOf(opts, nil)
}

// processMapping returns a process with a KeyMapper.
func (f *fixture) processMapping(keys sqllock.KeyMapper) *process {
	f.Helper()
	return f.processOf(sqllock.RegistryOptions{TTL: ttl, NoRenew: true}, keys)
}

func (f *fixture) processOf(opts sqllock.RegistryOptions, keys sqllock.KeyMapper) *process {
	f.Helper()
	db, network := f.Network()
	registry := f.Registry(db, sqllock.RepositoryOptions{Keys: keys}, opts)
	f.Cleanup(func() { f.Must(registry.Close(context.Background())) })
	lock := check.Value(rwlock.New(registry, key))(f)
	return &process{lock, f, registry, registry.Repository(), network}
}

// A method is one of those that lock and take no limit.
type method func(context.Context) (*sqllock.Lease, error)

// get calls a method that is to succeed.
func (f *fixture) get(lock method) *sqllock.Lease {
	f.Helper()
	return check.Value(lock(f.Context()))(f)
}

// refused calls a method that is to find the lock held by a holder.
func (f *fixture) refused(try method, holder string) {
	f.Helper()
	lease, err := try(f.Context())
	var held *sqllock.HeldError
	if lease != nil || !errors.As(err, &held) || held.Key != key || held.Holder != holder || held.Left <= 0 {
		f.Fatalf("%v, %v, want one held by %s", lease, err, holder)
	}
}

// An outcome is what a method returned in another goroutine.
type outcome struct {
	lease *sqllock.Lease
	err   error
}

// start calls a method in another goroutine, and returns when that waits.
func (f *fixture) start(ctx context.Context, lock method) <-chan outcome {
	f.Helper()
	result := make(chan outcome, 1)
	go func() {
		lease, err := lock(ctx)
		result <- outcome{lease, err}
	}()
	time.Sleep(time.Second)
	return result
}

// waits checks that a call that was started has not returned after a while.
func (f *fixture) waits(result <-chan outcome) {
	f.Helper()
	select {
	case o := <-result:
		f.Fatalf("it did not wait: %v, %v", o.lease, o.err)
	case <-time.After(time.Second):
	}
}

// gets returns the lease of a call that was started.
func (f *fixture) gets(result <-chan outcome) *sqllock.Lease {
	f.Helper()
	o := <-result
	f.Must(o.err)
	return o.lease
}

// crashed acquires a row for a process that crashes at once.
func (p *process) crashed(rowKey string, ttl time.Duration) (holder string) {
	p.f.Helper()
	holder = p.repository.NewHolder()
	got := check.Value(p.repository.Acquire(p.f.Context(), rowKey, holder, ttl))(p.f)
	if !got.Acquired {
		p.f.Fatalf("%q is held", rowKey)
	}
	return holder
}

// rows checks how many rows there are that are held.
func (p *process) rows(want int) {
	p.f.Helper()
	rows := check.Value(p.repository.List(p.f.Context()))(p.f)
	held := 0
	for _, row := range rows {
		if !row.Expired() {
			held++
		}
	}
	if held != want {
		p.f.Errorf("%d rows, want %d: %+v", held, want, rows)
	}
}
