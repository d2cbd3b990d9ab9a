package state

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// useDirectory gives the test its own state directory, and returns it.
func useDirectory(t *testing.T) string {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	return check.Value(Directory())(t)
}

func TestRememberKey(t *testing.T) {
	path := filepath.Join(useDirectory(t), keysFile)
	for _, name := range []string{
		"orders/42", "Ünïcode key", "orders/42", "", "two\nlines", "\xff", strings.Repeat("x", maxKeyLength+1),
		"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
	} {
		RememberKey(name)
	}
	check.Same(t, "remembered", readLines(keysFile), []string{"orders/42", "Ünïcode key"})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && filepath.Separator == '/' {
		t.Errorf("other users can read the file: %v, %v", info.Mode(), err)
	}
}

func TestKeysAreBounded(t *testing.T) {
	directory := useDirectory(t)
	RememberKey("first")
	many := make([]string, maxKeys)
	for i := range many {
		many[i] = fmt.Sprint("name ", i)
	}
	writeLines(directory, keysFile, many)
	RememberKey("last")
	names := readLines(keysFile)
	if len(names) != maxKeys || names[0] != "name 1" || names[maxKeys-1] != "last" {
		t.Errorf("%d names, the first %q, the last %q", len(names), names[0], names[len(names)-1])
	}
}

// TestRememberKeyConcurrently checks that no line is torn or appears twice. Keys may be
// missing: a call does not wait long for the file.
func TestRememberKeyConcurrently(t *testing.T) {
	path := filepath.Join(useDirectory(t), keysFile)
	var together sync.WaitGroup
	for i := range 8 {
		together.Go(func() {
			for j := range 5 {
				RememberKey(fmt.Sprintf("name of some length %d", (i+j)%10))
			}
		})
	}
	together.Wait()
	names := readLines(keysFile)
	slices.Sort(names)
	if len(names) == 0 || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("names %q", names)
	}
	for _, name := range names {
		if _, digit, ok := strings.Cut(name, "name of some length "); !ok || len(digit) != 1 {
			t.Errorf("torn line %q", name)
		}
	}
	if rest, _ := filepath.Glob(path + ".[0-9]*"); len(rest) > 0 {
		t.Errorf("temporary files are left: %q", rest)
	}
}

func TestRememberKeyWithoutDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	check.Must(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("XDG_STATE_HOME", file)
	RememberKey("orders/42") // must not panic, hang or print
}

// TestSeatsAreKnown maps the rows of semaphores and read-write locks back to their keys.
func TestSeatsAreKnown(t *testing.T) {
	directory := useDirectory(t)
	const uuid = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
	RememberSeats("two words", "permit", 3)
	RememberSeats("two words", "permit", 3)
	RememberSeats(uuid, "reader", 256)
	RememberSeats("two\nlines", "permit", 3)
	check.Equal(t, "remembered", len(readLines(seatsFile)), 2)
	lines := append(readLines(seatsFile), "", "permit 1", "permit many key", "permit 1000000000 damaged")
	writeLines(directory, seatsFile, lines)
	known := Keys()
	const hash = "573eb82c-528c-319f-8097-158784ff0aed" // the LOCK_KEY of "two words"
	for key, want := range map[string]bool{
		hash + " permit 0": true, hash + " permit 2": true, hash + " permit 3": false, hash + " permit turn": true, hash + " reader turn": false,
		"two words":                         false, // the plain lock was not used
		strings.ToLower(uuid) + " reader 0": true, uuid + " reader 0": false,
	} {
		lockKey := check.Value(sqllock.SpringKeys(key))(t)
		if got, ok := known[lockKey]; ok != want || ok && got != key {
			t.Errorf("%q is %q, %v", key, got, ok)
		}
	}
}
