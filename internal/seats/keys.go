package seats

import "strconv"

// The kinds of seats. A kind stands in the keys of its seats, so it must stay the same in all
// versions.
const (
	Permit = "permit" // of a semaphore
	Reader = "reader" // of a read-write lock
)

// The keys of a set begin with the LOCK_KEY of its lock and not with the key as written: all keys with
// one LOCK_KEY are one lock, so its seats must be the same, too.

// TurnKey returns the key of the turn of a set. It names the kind, so that a semaphore and a
// read-write lock of one key do not wait for each other.
func TurnKey(lockKey, kind string) string { return lockKey + " " + kind + " turn" }

// SeatKey returns the key of the seat with number i of a set.
func SeatKey(lockKey, kind string, i int) string { return lockKey + " " + kind + " " + strconv.Itoa(i) }
