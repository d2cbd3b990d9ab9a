package sqllock

import (
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/locktable"
)

// A request is what a caller asks for: a key, mapped once, and the settings of its
// handle.
type request struct {
	key       string     // as the caller wrote it, or what messages call a joint lock
	lockKey   string     // what stands in LOCK_KEY, in the first row of a joint lock
	joint     []namedKey // all keys of a joint lock, in the order of their LOCK_KEYs
	ttl       time.Duration
	minHold   time.Duration // how long the row stays at least
	autoRenew bool
}

// A namedKey is a key as the caller wrote it, and its LOCK_KEY.
type namedKey struct{ key, lockKey string }

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
