package sqllock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
)

// The errors of this package, to be found with errors.Is. They fall into four
// groups that are never confused: not acquired, lost, database trouble, bad
// input.
var (
	// ErrNotAcquired is returned when a lock could not be had in the time
	// allowed, or by a try. The error is a [*HeldError], which says who holds
	// the lock, where that is known. If it was the caller's context that ended
	// the wait, errors.Is finds context.Canceled or context.DeadlineExceeded
	// too.
	ErrNotAcquired = errors.New("sqllock: not acquired")

	// ErrLockLost is returned when a lease ended before its holder gave it
	// back: the time-to-live ran out, or its row was taken or removed. Work
	// done under the lock may have met another holder's. It is also the cause
	// with which [Lease.Context] ends. Spring throws a
	// ConcurrentModificationException.
	ErrLockLost = errors.New("sqllock: lock lost")

	// ErrDatabase is returned for trouble with the database: not reachable, an
	// error that has no meaning for locks, or one of the two below. errors.As
	// finds the driver's own error in it.
	ErrDatabase = errors.New("sqllock: database trouble")

	// ErrSchema is an ErrDatabase: the lock table is missing or has other
	// columns than expected. `sqllock migrate up` creates it.
	ErrSchema error = &kind{"sqllock: no usable lock table", ErrDatabase}

	// ErrReadOnly is an ErrDatabase: the server or session refuses writes, as a
	// replica does.
	ErrReadOnly error = &kind{"sqllock: database is read-only", ErrDatabase}

	// ErrPinned is returned when a row can be neither renewed nor removed because
	// a transaction has it pinned: one that [Lease.Guard] was called in and that is
	// still open. Commit it or roll it back before Unlock.
	ErrPinned = errors.New("sqllock: pinned by an open transaction")

	// ErrInvalid is returned for bad input: an empty or over-long key, region,
	// prefix or client id, a duration that is not positive. Nothing was done.
	ErrInvalid = errors.New("sqllock: invalid")

	// ErrNotHeld is returned by a lease after Unlock, by a nil lease, and by
	// [Registry.LeaseFrom] and [Registry.RenewLock] for a context that carries no
	// lease of the key. Spring throws an IllegalMonitorStateException.
	ErrNotHeld = errors.New("sqllock: not held")

	// ErrCapacity is returned by [Registry.Obtain], and by a handle whose lock
	// was evicted since, when the cache is full of locks that are held or waited
	// for. Spring throws a CannotAcquireLockException.
	ErrCapacity = errors.New("sqllock: lock cache is full")

	// ErrClosed is returned by a registry after Close, and is the cause with
	// which the contexts of its leases end.
	ErrClosed = errors.New("sqllock: registry is closed")
)

// A kind is an error that is one of another kind, too.
type kind struct {
	text string
	of   error
}

func (k *kind) Error() string { return k.text }
func (k *kind) Unwrap() error { return k.of }

// A HeldError says why a lock was not acquired and, as far as known, who has
// it. errors.Is finds [ErrNotAcquired] in it.
type HeldError struct {
	// Key is the key as the caller wrote it.
	Key string
	// Holder is the CLIENT_ID of the row, or "" if it is not known: the lock
	// was about to change hands.
	Holder string
	// Left is how long the row had still to last, by the database's clock. It does
	// not mean that the lock is free then: leases are renewed. Of a holder in the same
	// registry, which the database is not asked about, it is counted from before the
	// holder's last statement was sent: the row may last longer, by at most the time
	// that this statement took.
	Left time.Duration

	cause error // what ended the wait, or nil
}

// Error implements error.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("%v: %q", ErrNotAcquired, e.Key)
	if e.Holder != "" {
		text += fmt.Sprintf(" is held by %s for another %v", e.Holder, e.Left.Round(time.Millisecond))
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns ErrNotAcquired and what ended the wait, if anything did.
func (e *HeldError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrNotAcquired}
	}
	return []error{ErrNotAcquired, e.cause}
}

// notAcquired describes a wait that ctx has ended, or a try if it has not.
func notAcquired(ctx context.Context, key string, seen Row) error {
	return &HeldError{Key: key, Holder: seen.Holder, Left: max(seen.Left, 0), cause: ended(ctx)}
}

// timerDelay is how long after its deadline a context may take to end.
const timerDelay = time.Second

// ended returns why ctx is done, so that both errors.Is(err, ctx.Err()) and the
// caller's own cause are found, or nil.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		// A driver that gives the deadline to the network may notice it before
		// the context's own timer has run. A context of the caller's own may have
		// a deadline and never end.
		awaitEnd(ctx)
	}
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// awaitEnd waits for the timer of a context whose deadline has passed.
func awaitEnd(ctx context.Context) {
	done := ctx.Done()
	if done == nil { // it never ends
		return
	}
	timer := time.NewTimer(timerDelay)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// invalid makes an ErrInvalid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// trouble makes an ErrDatabase of an error that op, done to key, ended with. A
// done context explains any error better than the driver does, but a driver that had to
// be left behind is trouble of its own.
func (r *Repository) trouble(ctx context.Context, op, key string, err error) error {
	if err == nil {
		return nil
	}
	subject := op
	if key != "" {
		subject = fmt.Sprintf("%s %q", op, key)
	}
	if errors.Is(err, bounded.ErrNoAnswer) {
		return fmt.Errorf("%w: %s: %w", ErrDatabase, subject, err)
	}
	if cause := ended(ctx); cause != nil {
		return fmt.Errorf("sqllock: %s: %w", subject, cause)
	}
	switch r.dialect.Classify(err) {
	case dialect.Schema:
		return fmt.Errorf("%w: %s: %w (run `sqllock migrate up`, or see docs/schema.md)", ErrSchema, subject, err)
	case dialect.Blocked:
		return fmt.Errorf("%w: %s: %w", ErrPinned, subject, err)
	case dialect.ReadOnly:
		return fmt.Errorf("%w: %s: %w", ErrReadOnly, subject, err)
	default:
		return fmt.Errorf("%w: %s: %w", ErrDatabase, subject, err)
	}
}
