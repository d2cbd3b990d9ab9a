// Package examples runs the programs, and compares what they print with what their comments say.
package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestExamples runs all of them but the service, which has its own tests; the README has each.
func TestExamples(t *testing.T) {
	t.Parallel()
	bin := build(t)
	programs := check.Value(filepath.Glob("*/main.go"))(t)
	readme := check.Value(os.ReadFile("README.md"))(t)
	if len(programs) != 3 {
		t.Errorf("%d programs", len(programs))
	}
	for _, program := range programs {
		name := filepath.Dir(program)
		if !strings.Contains(string(readme), "("+name+"/main.go)") {
			t.Errorf("the README does not have %s", name)
		}
		if name == "service" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, name, output(t, filepath.Join(bin, name)))
		})
	}
}

// output runs a program. A machine that stands still for longer than a lease costs it: then the program
// runs again, twice at most.
func output(t *testing.T, program string) string {
	t.Helper()
	for again := 2; ; again-- {
		printed, err := exec.CommandContext(t.Context(), program).CombinedOutput() //nolint:gosec // it was built here
		if err == nil {
			return string(printed)
		}
		t.Logf("%v: %s", err, printed)
		if again == 0 || !strings.Contains(string(printed), "lock lost") {
			t.FailNow()
		}
	}
}

// build compiles all programs, and returns their directory.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() + string(filepath.Separator)
	if printed, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./...").CombinedOutput(); err != nil { //nolint:gosec // the directory of the test
		t.Fatalf("%v: %s", err, printed)
	}
	return dir
}

// compare compares what a program has printed with the last block of its comment.
func compare(t *testing.T, name, printed string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(name, "main.go")) //nolint:gosec // one of the programs
	check.Must(t, err)
	comment, _, _ := strings.Cut(string(text), "package main")
	blocks := strings.Split(comment, "//\n")
	var wanted strings.Builder
	for line := range strings.Lines(blocks[len(blocks)-1]) {
		wanted.WriteString(strings.TrimPrefix(line, "//\t"))
	}
	if printed != wanted.String() {
		t.Errorf("it printed\n%s\nits comment says\n%s", printed, &wanted)
	}
}
