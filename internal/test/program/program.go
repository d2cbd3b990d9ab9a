package program

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Main is for TestMain. It makes commands that tests can start: "sqllock", and the names
// given, call sqllock, the main function of the command. On Unix there are others that
// run it:
//
//	in-group COMMAND…         runs a command in its own process group, as timeout(1) does
//	without-rights sqllock …  runs sqllock as a user without rights
//	as-reaper COMMAND…        runs a command as the first process of a container (Linux)
//	in-terminal COMMAND…      runs a command in a new terminal (Linux)
func Main(m *testing.M, sqllock func(), names ...string) {
	// With the race detector a program sleeps for a second before it exits.
	if err := os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0")); err != nil {
		panic(err)
	}
	commands := helpers(sqllock)
	for _, name := range append(names, "sqllock") {
		commands[name] = sqllock
	}
	testscript.Main(m, commands)
}

// Contains checks that text contains all of the parts.
func Contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}
