package state

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"
)

const (
	maxKeyLength     = 1000 // in bytes
	linesLockTimeout = 500 * time.Millisecond
)

// remember adds a line to a file of the state directory, unless it is there. If the file has more
// than most lines then, the first are dropped.
func remember(file, line string, most int) {
	directory, err := Directory()
	if err != nil || slices.Contains(readLines(file), line) {
		return
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), linesLockTimeout)
	defer cancel()
	lock := flock.New(filepath.Join(directory, file+".lock"))
	if ok, err := lock.TryLockContext(ctx, 5*time.Millisecond); !ok || err != nil {
		return
	}
	defer func() { _ = lock.Close() }()
	// Read again: another process may have written since.
	if lines := readLines(file); !slices.Contains(lines, line) {
		lines = append(lines, line)
		writeLines(directory, file, lines[max(0, len(lines)-most):])
	}
}

// readLines returns the lines of a file of the state directory.
func readLines(file string) []string {
	directory, err := Directory()
	if err != nil {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(directory, file))
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// writeLines replaces the file in one step, so that readers need no lock.
func writeLines(directory, file string, lines []string) {
	temporary, err := os.CreateTemp(directory, file+".*")
	if err != nil {
		return
	}
	_, err = temporary.WriteString(strings.Join(lines, "\n") + "\n")
	if closeErr := temporary.Close(); err == nil && closeErr == nil {
		err = os.Rename(temporary.Name(), filepath.Join(directory, file))
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
}

// fitsOnLine reports whether a key can be part of a line.
func fitsOnLine(key string) bool {
	return key != "" && len(key) <= maxKeyLength && utf8.ValidString(key) && !strings.ContainsAny(key, "\r\n")
}
