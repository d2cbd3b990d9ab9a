package state

import "regexp"

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
