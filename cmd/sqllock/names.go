package main

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

// The table holds only hashes of most keys. So that listings can show what was
// meant, each user has a file with the keys used on this host, one a line, in
// the order of their first use.
const (
	maxNames      = 1000 // the oldest give way
	longestName   = 1000 // in bytes
	namesPatience = 500 * time.Millisecond
)

// rememberName notes that a key was used on this host. It fails silently: names
// are a convenience, and must neither stop nor delay a command.
func rememberName(key string) {
	path, err := namesPath()
	if err != nil || !worthRemembering(key) || slices.Contains(readNames(path), key) {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), namesPatience)
	defer cancel()
	lock := flock.New(path + ".lock")
	if ok, err := lock.TryLockContext(ctx, 5*time.Millisecond); !ok || err != nil {
		return
	}
	defer func() { _ = lock.Close() }()
	// Read again: others may have written meanwhile.
	if names := readNames(path); !slices.Contains(names, key) {
		writeNames(path, append(names, key))
	}
}

func namesPath() (string, error) {
	directory, err := stateDirectory()
	return filepath.Join(directory, "names"), err
}

// worthRemembering tells whether a key fits on a line and is not in the table
// as it is.
func worthRemembering(key string) bool {
	return key != "" && len(key) <= longestName && utf8.ValidString(key) &&
		!strings.ContainsAny(key, "\r\n") && !uuidForm.MatchString(key)
}

func readNames(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// writeNames replaces the file in one step, so that readers need no lock.
func writeNames(path string, names []string) {
	names = names[max(0, len(names)-maxNames):]
	file, err := os.CreateTemp(filepath.Dir(path), "names.*")
	if err != nil {
		return
	}
	_, err = file.WriteString(strings.Join(names, "\n") + "\n")
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

// nameBook translates LOCK_KEY back into keys, as far as they are known.
type nameBook map[string]string

// newNameBook returns the names of this host and those given.
func newNameBook(given []string) nameBook {
	book := make(nameBook)
	var known []string
	if path, err := namesPath(); err == nil {
		known = readNames(path)
	}
	for _, name := range append(known, given...) {
		if lockKey, err := sqllock.SpringKeys(name); err == nil {
			book[lockKey] = name
		}
	}
	return book
}

// keyOf returns the key that a row belongs to. A LOCK_KEY that is not one of
// Spring's hashes is the key itself.
func (book nameBook) keyOf(lockKey string) (key string, known bool) {
	if key, known = book[lockKey]; known {
		return key, true
	}
	if hashForm.MatchString(lockKey) {
		return "", false
	}
	return lockKey, true
}
