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

// Keys returns the keys used on this host, with those of the rows of semaphores and read-write locks,
// and those given, by LOCK_KEY.
func Keys(given ...string) map[string]string {
	known := make(map[string]string)
	for _, key := range slices.Concat(given, seatKeys(), readLines(keysFile)) {
		if lockKey, err := sqllock.SpringKeys(key); err == nil {
			known[lockKey] = key
		}
	}
	return known
}
