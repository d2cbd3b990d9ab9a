//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
)

const checkout = "../../.."

// TestStart checks that the page has the commands and the program that this program follows, so that
// make newcomer, which is rarely run, still works.
func TestStart(t *testing.T) {
	t.Parallel()
	text, err := readPage(checkout, "docs/start.md")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(text.blocks("sh"), "\n")
	for prefix := range expected {
		if !strings.Contains("\n"+all, "\n"+prefix) {
			t.Errorf("no command begins with %q in:\n%s", prefix, all)
		}
	}
	if !strings.Contains(all, "\nexport SQLLOCK_DSN=") {
		t.Errorf("no DSN in:\n%s", all)
	}
	if n := len(text.blocks("sh")); n != 4 {
		t.Errorf("%d blocks of commands; the program is written after the second", n)
	}
	if program, err := replaced(text.blocks("go")[0], "pgxlock", "sqlitelock"); err != nil || !strings.HasPrefix(program, "package main\n") {
		t.Errorf("program %q, error %v", program, err)
	}
}

func TestContribution(t *testing.T) {
	t.Parallel()
	text, err := readPage(checkout, "CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loopOf(text); err != nil {
		t.Error(err)
	}
	source, err := os.ReadFile(checkout + "/" + changedFile)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), before); n != 1 {
		t.Errorf("%d times %q in %s, want 1", n, before, changedFile)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	got := lines("export A=$B   # or C\n\ngo test -run '^#' .  # one\nwait\n")
	if want := "export A=$B|go test -run '^#' .|wait"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDSNAsURL(t *testing.T) {
	t.Parallel()
	if got, want := asURL("app:secret@tcp(127.0.0.1:3306)/app"), "mysql://app:secret@127.0.0.1:3306/app"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
