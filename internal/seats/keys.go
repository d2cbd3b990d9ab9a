package seats

import (
	"strconv"
	"strings"
)

// The kinds of seats. A kind stands in the keys of its seats, so it must stay the same in all
// versions.
const (
	Permit = "permit" // of a semaphore
	Reader = "reader" // of a read-write lock
)

// Base returns how the keys of a set begin, for a lock with this key and LOCK_KEY. It is the key,
// but for a UUID, which is one lock however it is spelled: so its seats must be the same, too.
func Base(key, lockKey string) string {
	if strings.EqualFold(lockKey, key) {
		return lockKey
	}
	return key
}

// TurnKey returns the key of the turn of a set. It names the kind, so that a semaphore and a
// read-write lock of one key do not wait for each other.
func TurnKey(base, kind string) string { return base + " " + kind + " turn" }

// SeatKey returns the key of the seat with number i of a set.
func SeatKey(base, kind string, i int) string { return base + " " + kind + " " + strconv.Itoa(i) }
