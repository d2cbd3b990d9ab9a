// Package seatkey says what the rows of a semaphore and of a read-write lock are called: their keys, and how the table of
// names has them. Both must stay the same in all versions.
//
// The keys of a set begin with the LOCK_KEY of its lock and not with the key as written: all keys with one LOCK_KEY are one
// lock, so its seats must be the same, too.
package seatkey

import (
	"regexp"
	"strconv"
	"strings"
)

// The kinds of seats.
const (
	Permit = "permit" // of a semaphore
	Reader = "reader" // of a read-write lock
)

// TurnNumber stands in place of the number in the key of the turn of a set.
const TurnNumber = "turn"

// Turn returns the key of the turn of a set. It names the kind, so that a semaphore and a
// read-write lock of one key do not wait for each other.
func Turn(lockKey, kind string) string { return Prefix(lockKey, kind) + TurnNumber }

// Seat returns the key of the seat with number i of a set.
func Seat(lockKey, kind string, i int) string { return Prefix(lockKey, kind) + strconv.Itoa(i) }

// Prefix returns what the keys of a set begin with.
func Prefix(lockKey, kind string) string { return lockKey + " " + kind + " " }

// Parse is the inverse of [Seat], and of [Turn] with [TurnNumber] for the number. ok is false for any other key.
func Parse(key string) (lockKey, kind, number string, ok bool) {
	if parts := keyForm.FindStringSubmatch(key); parts != nil {
		return parts[1], parts[2], parts[3], true
	}
	return "", "", "", false
}

// IsTurn reports whether a key is one of [Turn].
func IsTurn(key string) bool {
	return strings.HasSuffix(key, " "+Permit+" "+TurnNumber) || strings.HasSuffix(key, " "+Reader+" "+TurnNumber)
}

// Name is how the table of names has a seat, and how people read it, as in "permit 2 of render". key is that of the
// semaphore or the read-write lock.
func Name(kind, number, key string) string { return kind + " " + number + " of " + key }

// ParseName is the inverse of [Name].
func ParseName(name string) (kind, number, key string, ok bool) {
	if parts := nameForm.FindStringSubmatch(name); parts != nil {
		return parts[1], parts[2], parts[3], true
	}
	return "", "", "", false
}

const (
	kindForm   = `(` + Permit + `|` + Reader + `)`
	numberForm = `(` + TurnNumber + `|0|[1-9][0-9]*)`
)

var (
	keyForm  = regexp.MustCompile(`^(.+) ` + kindForm + ` ` + numberForm + `$`)
	nameForm = regexp.MustCompile(`(?s)^` + kindForm + ` ` + numberForm + ` of (.+)$`)
)
