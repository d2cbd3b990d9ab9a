package sqllock

import (
	"fmt"
	"slices"
	"strings"
)

// MaxKeys is how many keys a joint lock has at most: see [Registry.ObtainAll].
const MaxKeys = 1000

// ObtainAll returns one lock of several keys, a joint lock: a caller acquires all of them,
// or none. It sends nothing to the database.
//
//   - The rows of all keys are acquired by one statement in one transaction, released by one, and
//     renewed by one. Each excludes callers that want that key alone, also in Java.
//   - There is one [*Lease]: one context, one deadline, one holder, and one fencing token, which is
//     higher than every earlier token of each of the keys. [Lease.Guard] pins all rows. If one of
//     the rows is taken or deleted, the whole lease is lost.
//   - Callers may name the keys in any order: joint locks cannot deadlock with each other. While one
//     is waited for, none of its rows is taken.
//   - In this registry the caller queues at one key after the other. While it waits for some of them, it
//     keeps others, which are free, for a limited time, and then lets others pass: so it cannot deadlock
//     with callers that hold one key and want another, either. That time grows from nothing to 2 s with
//     each try that fails. Where it has let others pass it is the next. While another process has one of
//     the keys, it keeps none of the others.
//   - A refusal is a [*HeldError] about a key that was held.
//   - A caller that holds the joint lock enters it again, with the lease's context, by any of the keys
//     or several. If ctx carries leases of some of the keys and not of all, Lock returns
//     [ErrInvalid]: it would wait for itself.
//   - Joint locks are neither handed over to the next caller of the process (see
//     [RegistryOptions.HandOff]) nor cached.
//
// Keys that differ, and that the collation of LOCK_KEY takes for one, cannot be acquired together: Lock
// and the like return an [ErrInvalid] that names the collation.
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
