package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/locktable"
)

// A Request is what a caller asks for: one key or several, mapped once, and the settings of its lease. The
// zero Request has no key.
type Request struct {
	key       string     // as the caller wrote it, or what messages call a joint lock
	keys      []namedKey // in the order of their LOCK_KEYs
	ttl       time.Duration
	minHold   time.Duration // how long the row stays at least
	joint     bool          // it has several keys
	autoRenew bool
	fair      bool // see WithFair
	inTurns   bool // see InTurns
	inFront   bool // it waits before the others of this process
}

// A namedKey is a key as the caller wrote it, and what stands in LOCK_KEY.
type namedKey struct{ key, lockKey string }

// Key returns the key as the caller wrote it. That of several names some of them, for messages.
func (r *Request) Key() string { return r.key }

// Keys returns the keys that r asks for, as the caller wrote them: several in the order of their LOCK_KEYs.
func (r *Request) Keys() []string {
	keys := make([]string, len(r.keys))
	for i, one := range r.keys {
		keys[i] = one.key
	}
	return keys
}

// TTL returns the time-to-live of the lease.
func (r *Request) TTL() time.Duration { return r.ttl }

// WithTTL returns r with another time-to-live.
func (r Request) WithTTL(ttl time.Duration) Request {
	r.ttl = ttl
	return r
}

// WithAutoRenew returns r for a lease that is renewed automatically, or not.
func (r Request) WithAutoRenew(on bool) Request {
	r.autoRenew = on
	return r
}

// WithMinHold returns r for a lock that stays taken for d at least.
func (r Request) WithMinHold(d time.Duration) Request {
	r.minHold = d
	return r
}

// WithFair returns r for a lock that is acquired in the order of arrival between processes, or not.
func (r Request) WithFair(on bool) Request {
	r.fair = on
	return r
}

// InTurns returns r for a lock that callers of many processes have in turn: after a streak of them, this process steps
// back. If first is true, the caller has had its turn and lost it, and waits before the others of its process.
func (r Request) InTurns(first bool) Request {
	r.inTurns, r.inFront = true, first
	return r
}

// withKey returns r for one key.
func (r Request) withKey(key, lockKey string) Request {
	r.key, r.keys = key, []namedKey{{key, lockKey}}
	return r
}

// withKeys returns r for several keys, each LOCK_KEY once.
func (r Request) withKeys(keys, lockKeys []string) Request {
	all := make([]namedKey, len(keys))
	for i, key := range keys {
		all[i] = namedKey{key, lockKeys[i]}
	}
	slices.SortStableFunc(all, func(a, b namedKey) int { return strings.Compare(a.lockKey, b.lockKey) })
	r.keys = slices.CompactFunc(all, func(a, b namedKey) bool { return a.lockKey == b.lockKey })
	if r.joint = len(r.keys) > 1; r.joint {
		r.key = jointName(keys)
	} else if len(r.keys) == 1 {
		r.key = r.keys[0].key
	}
	return r
}

// jointName is what messages call a joint lock.
func jointName(keys []string) string {
	const most = 3
	if len(keys) <= most+1 {
		return strings.Join(keys, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(keys[:most], ", "), len(keys)-most)
}

// find returns which of the keys that r asks for a LOCK_KEY is.
func (r *Request) find(lockKey string) (i int, found bool) {
	return slices.BinarySearchFunc(r.keys, lockKey, func(one namedKey, lockKey string) int {
		return strings.Compare(one.lockKey, lockKey)
	})
}

// covers reports whether r asks for a LOCK_KEY.
func (r *Request) covers(lockKey string) bool {
	_, found := r.find(lockKey)
	return found
}

// keyOf returns the key of a row as the caller wrote it, or what r is called if the row is not known.
func (r *Request) keyOf(row locktable.Row) string {
	if i, found := r.find(row.LockKey); found {
		return r.keys[i].key
	}
	return r.key
}
