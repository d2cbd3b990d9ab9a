package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sqllock/sqllock/internal/test/durations"
)

// withDurations returns a "go test" command that prints its results for the printer, and the
// printer, which prints them to w as usual. Other commands are returned as they are, with nil:
// those that run no tests, or whose output is not for people.
func withDurations(command []string, w io.Writer) ([]string, *durations.Printer) {
	test := slices.Index(command, "test")
	if !strings.HasPrefix(filepath.Base(command[0]), "go") || test < 0 {
		return command, nil
	}
	if before := command[1:test]; len(before) > 0 && (len(before) != 2 || before[0] != "-C") {
		return command, nil
	}
	verbose := false
	for _, argument := range command[test+1:] {
		name, value, _ := strings.Cut(strings.TrimLeft(argument, "-"), "=")
		switch {
		case argument == "-args" || argument == "--args":
			return insertJSON(command, test), durations.New(w, verbose)
		case !strings.HasPrefix(argument, "-"):
			// a package, or the value of a flag
		case name == "v":
			verbose = value != "false"
		case slices.Contains([]string{"bench", "c", "fuzz", "h", "help", "json", "list", "n"}, name):
			return command, nil
		}
	}
	return insertJSON(command, test), durations.New(w, verbose)
}

func insertJSON(command []string, test int) []string {
	return slices.Insert(slices.Clone(command), test+1, "-json")
}

// printDurations prints the slowest tests and the failed ones to the standard error, as the
// table is.
func printDurations(printers []*durations.Printer) {
	if list := durations.List(printers...); list != "" {
		say("the slowest tests, in real time (! is longer than 2 s; the test's comment says why):")
		_, _ = io.WriteString(os.Stderr, list)
	}
	for _, name := range durations.Failed(printers...) {
		say("FAILED: %s", name)
	}
}
