package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Main is for TestMain. It makes commands that tests can start: "sqllock", and the names given, call sqllock, the
// main function of the command. On Unix there are others that run it:
//
//	in-group COMMAND…         runs a command in its own process group, as timeout(1) does
//	without-rights sqllock …  runs sqllock as a user without rights
//	as-reaper COMMAND…        runs a command as the first process of a container (Linux)
//	in-terminal COMMAND…      runs a command in a new terminal (Linux)
func Main(m *testing.M, sqllock func(), names ...string) {
	commands := helpers(sqllock)
	for _, name := range append(names, "sqllock") {
		commands[name] = sqllock
	}
	if commands[filepath.Base(os.Args[0])] == nil {
		exitAtOnce()
		catchIgnored()
	}
	testscript.Main(m, commands)
}

// exitAtOnce saves a second for each program: with the race detector, a program sleeps so long before it exits. The
// setting is read when a program starts, so this one starts again.
func exitAtOnce() {
	const variable, setting = "GORACE", "atexit_sleep_ms=0"
	before := os.Getenv(variable)
	if strings.Contains(before, setting) {
		return
	}
	if err := os.Setenv(variable, strings.TrimSpace(before+" "+setting)); err != nil {
		panic(err)
	}
	startAgain()
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
