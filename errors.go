package sqllock

import (
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/clientid"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
)

// The errors of this package, for errors.Is. There are four groups: not acquired, lost,
// database error, bad input.
var (
	// ErrNotAcquired is returned if a lock was not acquired before a timeout, before ctx
	// ended, or by a single try. The error is a [*HeldError], which says who holds the lock,
	// where that is known. If the caller's context ended the wait, errors.Is finds
	// context.Canceled or context.DeadlineExceeded too. A timeout before the database has
	// answered at all, after a tenth of a second or more, is an ErrDatabase instead.
	ErrNotAcquired = failure.ErrNotAcquired

	// ErrLockLost is returned if a lease ended before its holder unlocked it: its
	// time-to-live or its MaxHold ran out, or its row was taken over or deleted. Work done under the lock
	// may have overlapped with another holder's. It is also the cause with which
	// [Lease.Context] ends. Spring throws a ConcurrentModificationException.
	ErrLockLost = failure.ErrLockLost

	// ErrDatabase is returned if the database cannot be reached, does not answer, or refuses
	// a statement. ErrSchema and ErrReadOnly are kinds of it. errors.As finds the driver's own
	// error in it. The first line of its text says what to try, where that is
	// known, and the driver's text follows on the next one.
	ErrDatabase = failure.ErrDatabase

	// ErrSchema is an ErrDatabase: the lock table is missing, and `sqllock migrate up` creates it, or
	// it is not what locks need: then the text names the cure.
	ErrSchema = failure.ErrSchema

	// ErrReadOnly is an ErrDatabase: the server or the session refuses writes, as a replica
	// does.
	ErrReadOnly = failure.ErrReadOnly

	// ErrPinned is returned if a row can be neither renewed nor deleted because an open
	// transaction has it pinned, in which [Lease.Guard] was called. Commit the transaction,
	// or roll it back, before Unlock.
	ErrPinned = failure.ErrPinned

	// ErrInvalid is returned for bad input: an empty or over-long key, region, prefix or
	// client id, a duration out of range; and for a server, session or transaction that
	// cannot be used: see [NewRepository] and [Lease.Guard]. Nothing was acquired.
	ErrInvalid = failure.ErrInvalid

	// ErrNotHeld is returned by a lease after Unlock, by a nil lease, and by
	// [Registry.LeaseFrom] and [Registry.RenewLock] for a context that carries no lease of
	// the key. Spring throws an IllegalMonitorStateException.
	ErrNotHeld = failure.ErrNotHeld

	// ErrCapacity is returned by [Registry.Obtain], and by a handle whose lock was evicted
	// since, if the cache is full of locks that are held or waited for. Spring throws a
	// CannotAcquireLockException.
	ErrCapacity = failure.ErrCapacity

	// ErrClosed is returned by a registry after Close, and is the cause with which the
	// contexts of its leases end.
	ErrClosed = failure.ErrClosed
)

// A HeldError says why a lock was not acquired and, as far as known, who holds it. errors.Is
// finds [ErrNotAcquired] in it.
type HeldError struct {
	// Key is the key as the caller wrote it.
	Key string
	// Holder is the CLIENT_ID of the row, or "" if it is not known, because the row was
	// released or taken over meanwhile.
	Holder string
	// Left is the time until the row expires, by the database's clock. The lock may not be
	// free then: leases are renewed. For a holder in the same registry, about which the
	// database is not asked, Left counts from before the holder's last statement was sent:
	// the row may last longer, by at most the time that this statement took.
	Left time.Duration
	// Process is the process that Holder belongs to, as it has named itself: see
	// [RegistryOptions].Application. It is the zero value if it is not known. A caller asks the
	// database once in five minutes for each process, more often for one that has not named itself yet, and only if the lock has been held for a second: while it
	// waits, or before a single try returns.
	Process Process
	// Pinned is the transaction that has the row locked, if Left is 0: the lease is over, and the row cannot be acquired
	// before that transaction ends. It is the zero value if the server does not tell: see [Repository.Pin].
	Pinned Pin
	// Waited is how long the call has waited. It is 0 after a single try, and if this is not known.
	Waited time.Duration

	cause error // what ended the wait, or nil
}

// Error implements error.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("%v: %q", ErrNotAcquired, e.Key)
	switch {
	case clientid.IsKept(e.Holder) && e.Left > 0:
		text += fmt.Sprintf(" stays taken for another %v: %s has finished, and its minimum hold lasts", e.left(), e.owner())
	case e.Pinned != (Pin{}):
		text += fmt.Sprintf(" was held by %s; its lease is over, and its row is %v", e.owner(), e.Pinned)
	case e.Holder != "" && e.Left <= 0:
		text += fmt.Sprintf(" was held by %s; its lease is over, and a transaction may have its row locked", e.owner())
	case e.Holder != "":
		text += fmt.Sprintf(" is held by %s; its lease ends in %v unless it is renewed", e.owner(), e.left())
	}
	if e.Waited >= time.Second {
		text += fmt.Sprintf("; waited %v", e.Waited.Round(100*time.Millisecond))
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// owner returns the process that holds the lock, if it is known, and its CLIENT_ID.
func (e *HeldError) owner() string {
	if process := e.Process.String(); process != "" {
		return process + " (" + e.Holder + ")"
	}
	return e.Holder
}

// left returns how long the lease lasts, in as many digits as a reader needs.
func (e *HeldError) left() time.Duration {
	if e.Left >= time.Second {
		return e.Left.Round(100 * time.Millisecond)
	}
	return e.Left.Round(time.Millisecond)
}

// Unwrap returns ErrNotAcquired and what ended the wait, if anything did.
func (e *HeldError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrNotAcquired}
	}
	return []error{ErrNotAcquired, e.cause}
}

// heldError makes a HeldError of a wait that cause has ended, or of a try.
func heldError(key, holder string, left, waited time.Duration, process string, pin locktable.Pin, cause error) error {
	return &HeldError{Key: key, Holder: holder, Left: left, Process: parseProcess(process), Pinned: Pin(pin), Waited: waited, cause: cause}
}

// invalid makes an ErrInvalid.
func invalid(format string, args ...any) error { return failure.Invalid(format, args...) }
