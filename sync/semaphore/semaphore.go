package semaphore

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seatkey"
	"github.com/sqllock/sqllock/internal/seats"
)

// MaxPermits is how many permits a semaphore can have.
const MaxPermits = 1000

// A Semaphore is a number of permits that callers of all processes share. It holds nothing itself.
// All methods are safe for concurrent use.
//
// Make one for each key and keep it. Callers of the same Semaphore, or a handle of it, wait in the order of
// their arrival, and leave the turn to other processes. They learn at once of permits that are released
// through it, and of others by polling.
type Semaphore struct {
	permits *seats.Set
	most    int
	terms   seats.Terms
}

// New returns the semaphore of key, which has as many permits. All processes should pass the same
// number: the package documentation says what happens if they do not. New sends nothing to the
// database.
//
// The errors are
//
//   - [sqllock.ErrInvalid] if permits is not 1 to [MaxPermits], if registry is nil, or for a bad key.
//     With [sqllock.PlainKeys] the key must leave room for " permit turn": it has 24 characters at most.
//   - [sqllock.ErrClosed] and [sqllock.ErrCapacity], as those of [sqllock.Registry.Obtain].
func New(registry *sqllock.Registry, key string, permits int) (*Semaphore, error) {
	if permits < 1 || permits > MaxPermits {
		return nil, seats.Invalid("%d permits of %q: there are 1 to %d", permits, key, MaxPermits)
	}
	set, err := seats.New(registry, key, seatkey.Permit, permits)
	if err != nil {
		return nil, err
	}
	return &Semaphore{permits: set, most: permits}, nil
}

// Key returns the key as the caller wrote it.
func (s *Semaphore) Key() string { return s.permits.Key() }

// Permits returns how many permits there are.
func (s *Semaphore) Permits() int { return s.most }

// WithTTL returns a handle of the same semaphore whose leases have another time-to-live than the
// registry's: see [sqllock.JdbcLock.WithTTL]. The methods of the handle that acquire return
// [sqllock.ErrInvalid] for one that no lease can have.
func (s *Semaphore) WithTTL(ttl time.Duration) *Semaphore {
	other := *s
	other.terms = s.terms.WithTTL(ttl)
	return &other
}

// WithAutoRenew returns a handle of the same semaphore whose leases are renewed automatically, or
// not, whatever the registry's options say.
func (s *Semaphore) WithAutoRenew(on bool) *Semaphore {
	other := *s
	other.terms = s.terms.WithAutoRenew(on)
	return &other
}

// Acquire acquires n permits, all or none, and waits as long as ctx lasts. The context of the lease
// is made from ctx, and ends when any of the permits is lost. [sqllock.Lease.Unlock] releases all of
// them.
//
// On an error the caller holds none. The errors are
//
//   - [sqllock.ErrNotAcquired] if ctx ends first, and ctx's own. It is a [*sqllock.HeldError] with the
//     semaphore's key. Its Holder is that of the permit which ends first, or the waiter whose turn it
//     is; "" if none is known.
//   - [sqllock.ErrDatabase], which ends the wait at once. If the database does not answer a caller that
//     locks the turn, those that wait behind it in this process get the same error.
//   - [sqllock.ErrInvalid] if n is not 1 to [Semaphore.Permits].
//   - [sqllock.ErrLockLost] if ctx carries a lease of a permit that is lost.
//   - [sqllock.ErrClosed] and [sqllock.ErrCapacity], as those of [sqllock.Registry.Obtain].
func (s *Semaphore) Acquire(ctx context.Context, n int) (*sqllock.Lease, error) {
	return s.acquire(ctx, n, seats.Forever)
}

// TryAcquire acquires n permits if that many are free and no waiter has the turn. Otherwise it
// returns [sqllock.ErrNotAcquired]. It does not wait, except for the database. The other errors are
// those of [Semaphore.Acquire].
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*sqllock.Lease, error) {
	return s.acquire(ctx, n, seats.NotAtAll)
}

// TryAcquireFor is Acquire with a limit to the wait, after which it returns
// [sqllock.ErrNotAcquired]. 0 means TryAcquire; a negative wait gives [sqllock.ErrInvalid].
func (s *Semaphore) TryAcquireFor(ctx context.Context, n int, wait time.Duration) (*sqllock.Lease, error) {
	if err := s.permits.CheckWait(wait); err != nil {
		return nil, err
	}
	return s.acquire(ctx, n, wait)
}

// Execute runs fn while it holds n permits, and waits for them as long as ctx lasts. The permits are
// released when fn returns or panics. fn's error and that of the release are joined.
//
// The context of fn is that of the lease: it ends with cause [sqllock.ErrLockLost] if a permit is
// lost. [sqllock.Registry.LeasesFrom] finds the lease in it. The errors without a run of fn are those
// of [Semaphore.Acquire], and [sqllock.ErrInvalid] if fn is nil.
func (s *Semaphore) Execute(ctx context.Context, n int, fn func(context.Context) error) error {
	return seats.Execute(ctx, func() (*sqllock.Lease, error) { return s.Acquire(ctx, n) }, fn)
}

// ExecuteFor is Execute with a limit to the wait for the permits: see [Semaphore.TryAcquireFor].
func (s *Semaphore) ExecuteFor(ctx context.Context, n int, wait time.Duration, fn func(context.Context) error) error {
	return seats.Execute(ctx, func() (*sqllock.Lease, error) { return s.TryAcquireFor(ctx, n, wait) }, fn)
}

// A Holder is a lease that holds permits.
type Holder struct {
	// ID is what stands in CLIENT_ID: see [sqllock.Lease.Holder].
	ID string
	// Permits is how many it holds.
	Permits int
	// Age is how long it has held them, and Left the time until it ends unless it is renewed. Both
	// are by the database's clock.
	Age, Left time.Duration
}

// Holders returns the holders of permits in all processes, the oldest first. Permits with
// higher numbers than [Semaphore.Permits], of processes that have more permits, are not seen.
//
// The errors are [sqllock.ErrDatabase], or that of ctx. A closed registry makes no difference.
func (s *Semaphore) Holders(ctx context.Context) ([]Holder, error) {
	read, err := s.permits.Read(ctx)
	if err != nil {
		return nil, err
	}
	var holders []Holder
	for _, h := range read.Holders() {
		holders = append(holders, Holder{ID: h.ID, Permits: h.Seats, Age: h.Age, Left: h.Left})
	}
	return holders, nil
}
