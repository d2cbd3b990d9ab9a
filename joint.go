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

// A caller of a joint lock keeps its place at some of its keys for a turn while it queues at others. The
// first turn has no length: the others may be taken for long. Each one that was too short is followed by
// one that is twice as long: otherwise callers that want single keys, and queue for longer at each, would
// keep it out for ever.
const (
	shortestTurn = time.Second
	longestTurn  = 16 * time.Second
)

// ObtainAll returns one lock of several keys, a joint lock: whoever acquires it has all of them,
// or none. It sends nothing to the database.
//
//   - The rows of all keys are acquired by one statement in one transaction, released by one, and
//     renewed by one. Each excludes whoever wants that key alone, also in Java.
//   - There is one [*Lease]: one context, one deadline, one holder, and one fencing token, which is
//     higher than every earlier token of each of the keys. [Lease.Guard] pins all rows. If one of
//     the rows is taken or deleted, the whole lease is lost.
//   - Callers may name the keys in any order: joint locks cannot deadlock with each other. While one
//     is waited for, none of its rows is taken.
//   - In this registry the caller queues at one key after the other. It keeps its place at some of them
//     for a limited time while it queues at others, then lets others pass: so it cannot deadlock with
//     callers that hold one key and want another, either. That time grows from nothing to 16 s with each
//     try that fails. While another process has one of the keys, it has its place at that one alone.
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
	all, err := r.repository.namedKeys(keys)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || len(all) > MaxKeys {
		return nil, invalid("%d keys: a joint lock has 1 to %d", len(all), MaxKeys)
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

// find returns which of the keys that r asks for a LOCK_KEY is.
func (r *request) find(lockKey string) (i int, found bool) {
	if !r.isJoint() {
		return 0, r.lockKey == lockKey
	}
	return slices.BinarySearchFunc(r.joint, lockKey, func(one namedKey, lockKey string) int {
		return strings.Compare(one.lockKey, lockKey)
	})
}

// covers reports whether r asks for a LOCK_KEY.
func (r *request) covers(lockKey string) bool {
	_, found := r.find(lockKey)
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
	if i, found := r.find(row.LockKey); found {
		return r.keyAt(i).key
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

// mayBeTaken reports whether the lease of a row that an attempt has found taken may last.
func (h *hold) mayBeTaken() bool {
	now := time.Now()
	for i := range h.count() {
		if now.Before(h.entryAt(i).takenUntil) {
			return true
		}
	}
	return false
}

// place returns which of the keys of h a row is of: the first if it is not known.
func (h *hold) place(row locktable.Row) int {
	if i, found := h.find(row.LockKey); found {
		return i
	}
	return 0
}

// errTurnOver is why a caller of a joint lock lets others pass.
var errTurnOver = errors.New("others may pass")

// queueAll makes the hold own the local mutexes of all its keys. The caller waits without limit at
// the one at which it waited in vain before, as it has no other then; and until the end of its turn
// at the others.
//
// Callers of joint locks wait for each other in the order of the keys alone: then one of them has what
// it needs. If each waited for what another has, with keys that are free, all would lose their turns.
func (w *waiter) queueAll(ctx context.Context) (seen locktable.Row, err error) {
	h := w.hold
	if err := h.lockAt(ctx, w.busy); err != nil {
		return h.ownerAt(w.busy), err
	}
	turn, cancel := context.WithTimeout(ctx, w.turn)
	defer cancel()
	first := w.busy
	for i := range h.count() {
		switch err := h.lockInOrder(turn, i, first); {
		case err == nil:
		case ctx.Err() != nil:
			return h.ownerAt(i), ctx.Err()
		default:
			if w.busy = i; turn.Err() != nil { // it was too short
				w.turn = min(max(shortestTurn, 2*w.turn), longestTurn)
			}
			return h.ownerAt(i), errTurnOver
		}
	}
	return locktable.Row{}, nil
}

// lockInOrder is lockAt for a caller that has the mutex at first already. It refuses to wait for a joint
// lock against the order of the keys.
func (h *hold) lockInOrder(ctx context.Context, i, first int) error {
	if owner := h.entryAt(i).mutex.Owner(); i < first && owner != nil && owner != h && owner.isJoint() {
		return errTurnOver
	}
	return h.lockAt(ctx, i)
}

// lockAt makes h own the local mutex of its i-th key. It does not enter it again.
func (h *hold) lockAt(ctx context.Context, i int) error {
	m := &h.entryAt(i).mutex
	if m.Owner() == h {
		return nil
	}
	if _, ok := m.TryLock(h); ok { // also if the turn has no length
		return nil
	}
	_, err := m.Lock(ctx, h)
	return err
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

// pollJoint is poll for a joint lock. Meanwhile the caller has its place at the key of the row alone,
// because the others may be free.
func (w *waiter) pollJoint(ctx context.Context, seen locktable.Row) (locktable.Row, error) {
	h := w.hold
	w.busy = h.place(seen)
	for i := range h.count() {
		if i != w.busy {
			h.entryAt(i).mutex.Release(h)
		}
	}
	seen, err := w.poll(ctx, seen)
	if err != nil && !w.outlasts(err) {
		return seen, err
	}
	if seen, err := w.queueAll(ctx); err != nil { // also after an outage: an attempt needs all
		return seen, err
	}
	return seen, err
}
