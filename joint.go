package sqllock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/locktable"
)

// MaxKeys is how many keys a joint lock has at most: see [Registry.ObtainAll].
const MaxKeys = 1000

// jointTurn is for how long a caller of a joint lock keeps its place at some of its keys while it
// waits for others.
const jointTurn = time.Second

// ObtainAll returns one lock of several keys, a joint lock: whoever acquires it has all of them,
// or none. It sends nothing to the database.
//
//   - The rows of all keys are acquired by one statement in one transaction, released by one, and
//     renewed by one. Each excludes whoever wants that key alone, also in Java.
//   - There is one [*Lease]: one context, one deadline, one holder, and one fencing token, which is
//     higher than every earlier token of each of the keys. [Lease.Guard] pins all rows. If one of
//     the rows is taken or deleted, the whole lease is lost.
//   - Callers may name the keys in any order: joint locks cannot deadlock with each other. While one
//     is waited for, none of its rows is taken. In this registry the caller queues at each key as
//     any other, and lets others pass after a second if it does not get the rest: so it cannot
//     deadlock with callers that hold one key and want another, either.
//   - A refusal is a [*HeldError] about a key that was held.
//   - A caller that holds the joint lock enters it again, with the lease's context, by any of the keys
//     or several. If ctx carries leases of some of the keys and not of all, Lock returns
//     [ErrInvalid]: it would wait for itself.
//   - Joint locks are neither handed over to the next caller of the process (see
//     [RegistryOptions.HandOff]) nor cached.
//
// Keys that map to one LOCK_KEY count once, and for a single one ObtainAll is Obtain. No key, more
// than [MaxKeys] or a bad one give an [ErrInvalid].
func (r *Registry) ObtainAll(keys ...string) (*JdbcLock, error) {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, invalid("%d keys: a joint lock has 1 to %d", len(keys), MaxKeys)
	}
	all, err := r.repository.namedKeys(keys)
	if err != nil {
		return nil, err
	}
	if len(all) == 1 {
		return r.Obtain(all[0].key)
	}
	if r.locks.closing.Err() != nil {
		return nil, fmt.Errorf("%w: %q", ErrClosed, keys)
	}
	lock := &JdbcLock{locks: r.locks, request: r.defaults}
	lock.joint = all
	lock.key, lock.lockKey = jointName(keys), all[0].lockKey
	return lock, nil
}

// A namedKey is a key as the caller wrote it, and its LOCK_KEY.
type namedKey struct{ key, lockKey string }

// namedKeys maps keys, and returns them in the order of their LOCK_KEYs, each once.
func (r *Repository) namedKeys(keys []string) ([]namedKey, error) {
	all := make([]namedKey, len(keys))
	for i, key := range keys {
		lockKey, err := r.LockKey(key)
		if err != nil {
			return nil, err
		}
		all[i] = namedKey{key, lockKey}
	}
	slices.SortStableFunc(all, func(a, b namedKey) int { return strings.Compare(a.lockKey, b.lockKey) })
	return slices.CompactFunc(all, func(a, b namedKey) bool { return a.lockKey == b.lockKey }), nil
}

// jointName is what messages call a joint lock.
func jointName(keys []string) string {
	const most = 3
	if len(keys) <= most+1 {
		return strings.Join(keys, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(keys[:most], ", "), len(keys)-most)
}

// isJoint reports whether r asks for several keys.
func (r *request) isJoint() bool { return len(r.joint) > 0 }

// count is how many keys r asks for.
func (r *request) count() int { return max(1, len(r.joint)) }

// keyAt returns the i-th key that r asks for, in the order of their LOCK_KEYs.
func (r *request) keyAt(i int) namedKey {
	if r.isJoint() {
		return r.joint[i]
	}
	return namedKey{r.key, r.lockKey}
}

// keys returns the keys that r asks for, as the caller wrote them.
func (r *request) keys() []string {
	keys := make([]string, r.count())
	for i := range keys {
		keys[i] = r.keyAt(i).key
	}
	return keys
}

// covers reports whether r asks for a LOCK_KEY.
func (r *request) covers(lockKey string) bool {
	if !r.isJoint() {
		return r.lockKey == lockKey
	}
	_, found := slices.BinarySearchFunc(r.joint, lockKey, func(one namedKey, lockKey string) int {
		return strings.Compare(one.lockKey, lockKey)
	})
	return found
}

// moreLockKeys are the LOCK_KEYs that r asks for beside the first.
func (r *request) moreLockKeys() []string {
	if !r.isJoint() {
		return nil
	}
	lockKeys := make([]string, 0, len(r.joint)-1)
	for _, one := range r.joint[1:] {
		lockKeys = append(lockKeys, one.lockKey)
	}
	return lockKeys
}

// keyOf returns the key of a row as the caller wrote it, or what r is called if the row is not known.
func (r *request) keyOf(row locktable.Row) string {
	for _, one := range r.joint {
		if one.lockKey == row.LockKey {
			return one.key
		}
	}
	return r.key
}

// carriedFor returns the hold that a caller with ctx enters again, or nil: the one that has all keys
// that r asks for.
func carriedFor(ctx context.Context, c *holdConfig, r *request) (*hold, error) {
	if !r.isJoint() {
		return carriedHold(ctx, c, r.lockKey), nil
	}
	var carried *hold
	for i, one := range r.joint {
		var h *hold
		switch lease, err := carriedLease(ctx, c, one.key, one.lockKey); {
		case err == nil:
			h = lease.hold
		case !errors.Is(err, ErrNotHeld):
			return nil, err
		}
		if i > 0 && h != carried {
			return nil, invalid("the context holds some of the keys %s, and not all by one lease: it would wait for itself", r.key)
		}
		carried = h
	}
	return carried, nil
}

// entryAt returns the entry of the i-th key of h.
func (h *hold) entryAt(i int) *entry {
	if i == 0 {
		return h.entry
	}
	return h.more[i-1]
}

// releaseMutexes lets the next callers of this process in, at each key.
func (h *hold) releaseMutexes() {
	for i := range h.count() {
		h.entryAt(i).mutex.Release(h)
	}
}

// waiters returns how many callers of this process wait behind h.
func (h *hold) waiters() (n int) {
	for i := range h.count() {
		n += h.entryAt(i).mutex.Waiters()
	}
	return n
}

// meets reports whether h and other have a key in common.
func (h *hold) meets(other *hold) bool {
	for i := range h.count() {
		if other.covers(h.keyAt(i).lockKey) {
			return true
		}
	}
	return false
}

// claimOf is the claim of the one row that h waits for.
func (h *hold) claimOf(row locktable.Row) locktable.Claim {
	c := h.claim()
	if h.isJoint() {
		c.LockKey, c.More = row.LockKey, nil
	}
	return c
}

// errTurnOver is why a caller of a joint lock lets others pass.
var errTurnOver = errors.New("others may pass")

// queueAll makes the hold own the local mutexes of all its keys. The caller waits without limit for
// the one at which it waited in vain before, as it has no other then; and until the end of its turn
// for the others.
func (w *waiter) queueAll(ctx context.Context) (seen locktable.Row, err error) {
	h := w.hold
	if _, err := h.entryAt(w.busy).mutex.Lock(ctx, h); err != nil {
		return h.ownerAt(w.busy), err
	}
	w.turnEnds = time.Now().Add(jointTurn)
	turn, cancel := context.WithDeadline(ctx, w.turnEnds)
	defer cancel()
	first := w.busy
	for i := range h.count() {
		if i == first {
			continue
		}
		if _, err := h.entryAt(i).mutex.Lock(turn, h); err == nil {
			continue
		}
		w.busy = i
		if ctx.Err() == nil {
			return h.ownerAt(i), errTurnOver
		}
		return h.ownerAt(i), ctx.Err()
	}
	return locktable.Row{}, nil
}

// tryAll is queueAll without waiting.
func (w *waiter) tryAll() (seen locktable.Row, err error) {
	for i := range w.hold.count() {
		if _, ok := w.hold.entryAt(i).mutex.TryLock(w.hold); !ok {
			return w.hold.ownerAt(i), errHeld
		}
	}
	return locktable.Row{}, nil
}

// ownerAt describes the hold of this process that has the i-th key of h.
func (h *hold) ownerAt(i int) locktable.Row {
	row := h.entryAt(i).mutex.Owner().row()
	row.LockKey = h.keyAt(i).lockKey
	return row
}

// isTurnOver reports whether a caller of a joint lock, which has all local mutexes and waits for
// rows, is to let others pass.
func (w *waiter) isTurnOver() bool {
	return w.hold.isJoint() && !w.once && !time.Now().Before(w.turnEnds)
}
