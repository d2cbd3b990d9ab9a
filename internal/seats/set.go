package seats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/internal/seatkey"
)

// MaxRaces is how many times in a row a caller may choose free seats and find that others were
// faster. After that it acts as if none were free.
const MaxRaces = 8

// A Set is the seats of one lock, and its turn, in one registry. All methods are safe for
// concurrent use.
type Set struct {
	registry *sqllock.Registry
	locks    *engine.Locks  // of the registry
	request  engine.Request // for the key of the lock
	inTurn   engine.Request // for the turn
	key      string
	lockKey  string
	prefix   string   // of the keys of the turn and of all seats
	turn     string   // the key of the turn
	keys     []string // of the seats, by number

	memory  memory
	waits   *report.Tracker
	seen    atomic.Pointer[string] // the holder that a caller has found last
	waiting atomic.Int32           // callers in [Set.InTurn]
	freed   chan struct{}          // has a value when a lease of this set has ended in this process
}

// New returns the seats of key, of one kind. It sends nothing to the database.
//
// The errors are [sqllock.ErrInvalid], also if the registry's KeyMapper refuses a row of the set or gives two
// of them one LOCK_KEY, and those of [sqllock.Registry.Obtain].
func New(registry *sqllock.Registry, key, kind string, seats int) (*Set, error) {
	if registry == nil {
		return nil, Invalid("%q needs a registry", key)
	}
	lockKey, err := registry.Repository().LockKey(key)
	if err != nil {
		return nil, err
	}
	s := &Set{
		registry: registry, waits: report.TrackerOf(registry), key: key, lockKey: lockKey, prefix: seatkey.Prefix(lockKey, kind), turn: seatkey.Turn(lockKey, kind),
		keys: make([]string, seats), freed: make(chan struct{}, 1), locks: engine.LocksOf(registry),
		memory: memory{seats: make(map[string]*seat)},
	}
	s.request = s.locks.Request([]string{key}, []string{lockKey})
	for i := range s.keys {
		s.keys[i] = seatkey.Seat(lockKey, kind, i)
	}
	if err := s.checkRows(lockKey); err != nil {
		return nil, err
	}
	turn, err := registry.Repository().LockKey(s.turn)
	if err != nil {
		return nil, err
	}
	s.inTurn = s.locks.Request([]string{s.turn}, []string{turn}).WithAutoRenew(true)
	return s, s.CheckOpen()
}

// checkRows returns [sqllock.ErrInvalid] unless each key of the set has a row of its own, beside that
// of the lock: a KeyMapper that cuts keys off would have two holders of seats share one.
func (s *Set) checkRows(lockKey string) error {
	owners := map[string]string{lockKey: s.key}
	for _, key := range slices.Concat(s.keys, []string{s.turn}) {
		row, err := s.registry.Repository().LockKey(key)
		if err != nil {
			return fmt.Errorf("%w (a row of %q, named after its LOCK_KEY)", err, s.key)
		}
		if other, taken := owners[row]; taken {
			return Invalid("the KeyMapper maps %q and %q to one LOCK_KEY, and both are rows of %q: it must distinguish them", other, key, s.key)
		}
		owners[row] = key
	}
	return nil
}

// Key returns the key of the lock.
func (s *Set) Key() string { return s.key }

// Registry returns the registry.
func (s *Set) Registry() *sqllock.Registry { return s.registry }

// AnySeat returns the key of a seat chosen at random: where most are free, callers seldom choose the
// same.
func (s *Set) AnySeat() string { return s.keys[jitter.N(int64(len(s.keys)))] }

// CheckOpen returns [sqllock.ErrClosed] if the registry is closed. A read of the table does not
// find that out. The registry then remembers the key, after which it names the rows of the set.
func (s *Set) CheckOpen() error {
	_, err := s.registry.Obtain(s.key)
	return err
}

// Carried returns the leases of seats that ctx carries and that were not unlocked, the innermost
// first.
func (s *Set) Carried(ctx context.Context) []*sqllock.Lease {
	return slices.DeleteFunc(s.registry.LeasesFrom(ctx), func(lease *sqllock.Lease) bool {
		return !slices.ContainsFunc(lease.Keys(), s.isSeat)
	})
}

// Own is [Set.Carried], or an [sqllock.ErrLockLost] if one of the leases is lost. To lock the seat of that one would enter it
// again, if its row is free because it was deleted.
func (s *Set) Own(ctx context.Context) ([]*sqllock.Lease, error) {
	own := s.Carried(ctx)
	for _, lease := range own {
		if _, err := s.registry.LeaseFrom(ctx, lease.Keys()[0]); errors.Is(err, sqllock.ErrLockLost) {
			return nil, err
		}
	}
	return own, nil
}

// SeatOf returns the key of a seat that a lease of [Set.Carried] has: not always its Key, as it may be
// that of a joint lock.
func (s *Set) SeatOf(lease *sqllock.Lease) string {
	keys := lease.Keys()
	return keys[slices.IndexFunc(keys, s.isSeat)]
}

func (s *Set) isSeat(key string) bool { return slices.Contains(s.keys, key) }

// Await notes that a call of ctx waits for the lock, until done is called: a long wait is reported.
func (s *Set) Await(ctx context.Context) (done func()) {
	return s.waits.Begin(ctx, report.Place{Key: s.key, LockKey: s.lockKey, Seen: func(context.Context) (string, error) {
		if holder := s.seen.Load(); holder != nil {
			return *holder, nil
		}
		return "", nil
	}}).End
}

// Watch wakes the caller that polls in [Set.InTurn] when lease ends.
func (s *Set) Watch(lease *sqllock.Lease) {
	context.AfterFunc(lease.Context(), s.wake)
}

func (s *Set) wake() {
	select {
	case s.freed <- struct{}{}:
	default: // the poller has not received the last one yet
	}
}

// Invalid makes an [sqllock.ErrInvalid].
func Invalid(format string, args ...any) error { return failure.Invalid(format, args...) }

// isHeld reports whether err means that a lock was not acquired because it is held.
func isHeld(err error) bool { return errors.Is(err, sqllock.ErrNotAcquired) }
