// Package examples runs the programs, and compares what they print with what their comments say.
package examples

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples takes twelve seconds, because longjob works for longer than its lease.
func TestExamples(t *testing.T) {
	t.Parallel()
	bin := build(t)
	for _, name := range []string{"cron", "consumer", "leader", "transfer", "fencedfiles", "longjob", "httpkeys"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, name, output(t, filepath.Join(bin, name)))
		})
	}
	t.Run("shutdown", func(t *testing.T) {
		t.Parallel()
		program := exec.CommandContext(t.Context(), filepath.Join(bin, "shutdown")) //nolint:gosec // it was built here
		output, err := program.StdoutPipe()
		must(t, err)
		must(t, program.Start())
		var printed strings.Builder
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if printed.Len() == 0 {
				must(t, program.Process.Signal(os.Interrupt)) // after the first step
			}
			printed.WriteString(lines.Text() + "\n")
		}
		must(t, program.Wait())
		// The machine may stand still for a second before the signal comes, and do another step.
		first, _, _ := strings.Cut(printed.String(), "\n")
		_, last, _ := strings.Cut(printed.String(), "stopping\n")
		compare(t, "shutdown", first+"\nstopping\n"+last)
	})
}

// TestEachExampleIsTested finds a program that no test runs, or that the README does not have.
func TestEachExampleIsTested(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("*/main.go")
	must(t, err)
	for _, program := range programs {
		name := filepath.Dir(program)
		for _, file := range []string{"README.md", "examples_test.go"} {
			text, err := os.ReadFile(file) //nolint:gosec // one of the two
			must(t, err)
			if quoted := `"` + name + `"`; !strings.Contains(string(text), quoted) && !strings.Contains(string(text), "./"+name+"`") {
				t.Errorf("%s does not have %s", file, name)
			}
		}
	}
	if len(programs) != 8 {
		t.Errorf("%d programs", len(programs))
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
	must(t, err)
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
