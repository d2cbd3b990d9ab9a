package rwlock

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seatkey"
	"github.com/sqllock/sqllock/internal/seats"
)

// MaxReaders is how many readers a lock can have at once, over all processes. All processes must
// agree on it, since a writer reads every row that a reader may have.
const MaxReaders = 256

// A Lock is a lock that many readers or one writer can hold, over all processes. It holds nothing
// itself. All methods are safe for concurrent use.
//
// Make one for each key and keep it. Callers of the same Lock, or a handle of it, wait in the order of
// their arrival, and leave the turn to other processes. They learn at once of leases of it that end, and
// of others by polling.
type Lock struct {
	readers *seats.Set
	terms   seats.Terms
	mark    writer // of its write leases
}

// New returns the read-write lock of key. It sends nothing to the database.
//
// The errors are
//
//   - [sqllock.ErrInvalid] if registry is nil, or for a bad key. With [sqllock.PlainKeys] the key
//     must leave room for " reader turn": it has 24 characters at most.
//   - [sqllock.ErrClosed] and [sqllock.ErrCapacity], as those of [sqllock.Registry.Obtain].
func New(registry *sqllock.Registry, key string) (*Lock, error) {
	readers, err := seats.New(registry, key, seatkey.Reader, MaxReaders)
	if err != nil {
		return nil, err
	}
	lockKey, err := registry.Repository().LockKey(key)
	if err != nil {
		return nil, err
	}
	return &Lock{readers: readers, mark: writer{lockKey}}, nil
}

// Key returns the key as the caller wrote it.
func (l *Lock) Key() string { return l.readers.Key() }

// WithTTL returns a handle of the same lock whose leases have another time-to-live than the
// registry's: see [sqllock.JdbcLock.WithTTL]. The methods of the handle that lock return
// [sqllock.ErrInvalid] for one that no lease can have.
func (l *Lock) WithTTL(ttl time.Duration) *Lock {
	other := *l
	other.terms = l.terms.WithTTL(ttl)
	return &other
}

// WithAutoRenew returns a handle of the same lock whose leases are renewed automatically, or not,
// whatever the registry's options say.
func (l *Lock) WithAutoRenew(on bool) *Lock {
	other := *l
	other.terms = l.terms.WithAutoRenew(on)
	return &other
}

// A Holder holds a read lock.
type Holder struct {
	// ID is what stands in CLIENT_ID: one acquisition of one client (see [sqllock.Lease.Holder]).
	ID string
	// Age is the time since the read lock was acquired, as [sqllock.Row] counts it.
	Age time.Duration
	// Left is the time until its lease ends unless it is renewed, by the database's clock.
	Left time.Duration
}

// Readers returns the holders of read locks in all processes, the oldest first. A caller of RLock
// that is about to be refused can be among them. Readers sends one statement, which writes nothing.
//
// The errors are [sqllock.ErrDatabase], or that of ctx.
func (l *Lock) Readers(ctx context.Context) ([]Holder, error) {
	read, err := l.readers.Read(ctx)
	if err != nil {
		return nil, err
	}
	var holders []Holder
	for _, h := range read.Holders() {
		holders = append(holders, Holder{ID: h.ID, Age: h.Age, Left: h.Left})
	}
	return holders, nil
}
