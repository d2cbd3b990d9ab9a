package state

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"github.com/sqllock/sqllock"
)

// For most keys, the table contains only a hash. So that listings can show the key,
// each user has a file with the keys used on this host, one a line, in the order of
// their first use.
const (
	maxKeys         = 1000 // the oldest are dropped
	maxKeyLength    = 1000 // in bytes
	keysLockTimeout = 500 * time.Millisecond
)

// RememberKey records that a key was used on this host. Errors are ignored: the file
// is a convenience, and must neither stop nor delay a command.
func RememberKey(key string) {
	path, err := keysPath()
	if err != nil || !canRemember(key) || slices.Contains(readKeys(path), key) {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), keysLockTimeout)
	defer cancel()
	lock := flock.New(path + ".lock")
	if ok, err := lock.TryLockContext(ctx, 5*time.Millisecond); !ok || err != nil {
		return
	}
	defer func() { _ = lock.Close() }()
	// Read again: another process may have written since.
	if keys := readKeys(path); !slices.Contains(keys, key) {
		writeKeys(path, append(keys, key))
	}
}

func keysPath() (string, error) {
	directory, err := Directory()
	return filepath.Join(directory, "names"), err
}

// canRemember reports whether a key fits on a line, and is not stored in the table
// unchanged.
func canRemember(key string) bool {
	return key != "" && len(key) <= maxKeyLength && utf8.ValidString(key) &&
		!strings.ContainsAny(key, "\r\n") && !uuidForm.MatchString(key)
}

func readKeys(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// writeKeys replaces the file in one step, so that readers need no lock.
func writeKeys(path string, keys []string) {
	keys = keys[max(0, len(keys)-maxKeys):]
	file, err := os.CreateTemp(filepath.Dir(path), "names.*")
	if err != nil {
		return
	}
	_, err = file.WriteString(strings.Join(keys, "\n") + "\n")
	if closeErr := file.Close(); err == nil && closeErr == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
}

var (
	uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	// hashForm is what Spring's mapping makes of a key that is no UUID: version 3.
	hashForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-3[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

// KnownKeys maps LOCK_KEY to the key, for keys that are known on this host.
type KnownKeys map[string]string

// Keys returns the keys used on this host, and those given.
func Keys(given ...string) KnownKeys {
	known := make(KnownKeys)
	var used []string
	if path, err := keysPath(); err == nil {
		used = readKeys(path)
	}
	for _, key := range append(used, given...) {
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
