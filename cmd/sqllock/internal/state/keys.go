package state

import (
	"regexp"
	"slices"

	"github.com/sqllock/sqllock"
)

// For most keys, the table contains only a hash. So that listings can show the key,
// each user has a file with the keys used on this host, one a line, in the order of
// their first use.
const (
	keysFile = "names"
	maxKeys  = 1000 // the oldest are dropped
)

// RememberKey records that a key was used on this host. Errors are ignored: the file
// is a convenience, and must neither stop nor delay a command.
func RememberKey(key string) {
	if canRemember(key) {
		remember(keysFile, key, maxKeys)
	}
}

// canRemember reports whether a key fits on a line, and is not stored in the table
// unchanged.
func canRemember(key string) bool { return fitsOnLine(key) && !uuidForm.MatchString(key) }

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// hashForm is what Spring's mapping makes of a key that is no UUID: version 3.
var hashForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-3[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// KnownKeys maps LOCK_KEY to the key, for keys that are known on this host.
type KnownKeys map[string]string

// Keys returns the keys used on this host, with those of the rows of semaphores and read-write locks,
// and those given.
func Keys(given ...string) KnownKeys {
	known := make(KnownKeys)
	for _, key := range slices.Concat(seatKeys(), readLines(keysFile), given) {
		if lockKey, err := sqllock.SpringKeys(key); err == nil {
			known[lockKey] = key
		}
	}
	return known
}

// KeyOf returns the key of a row, and reports whether it is known. A LOCK_KEY that is
// not one of Spring's hashes is itself the key.
func (k KnownKeys) KeyOf(lockKey string) (key string, known bool) {
	if key, known = k[lockKey]; known {
		return key, true
	}
	if hashForm.MatchString(lockKey) {
		return "", false
	}
	return lockKey, true
}
