package durations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A Printer is a writer for the standard output of "go test -json". It prints the results of
// packages and the output of failed tests, each test's in one piece, and counts the durations
// of all tests. It keeps at most [most] bytes of the output of a test.
type Printer struct {
	to io.Writer
	// all prints the output of all tests as it comes, as "go test -v" does.
	all      bool
	line     []byte // the beginning of a line
	packages map[string]*tests
	slowest  map[group]*duration
	failed   []string
	err      error // of the first write that failed
}

// most limits what is kept of one test's output.
const most = 1 << 20

// tests is the output of the tests of one package.
type tests struct {
	running map[string]*bytes.Buffer
	parents map[string]bool // the tests that have had subtests
	// stray is what passed tests have written past their log: the race detector's report or a
	// message of another goroutine can be counted among the output of the wrong test.
	stray bytes.Buffer
	// own is what the package has written outside its tests.
	own bytes.Buffer
}

// An event is a line of "go test -json"; see go doc test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// New returns a printer to w. If all is true, it prints the output of all tests.
func New(w io.Writer, all bool) *Printer {
	return &Printer{to: w, all: all, packages: make(map[string]*tests), slowest: make(map[group]*duration)}
}

// Write reads a part of the output.
func (p *Printer) Write(part []byte) (int, error) {
	p.line = append(p.line, part...)
	for {
		line, rest, found := bytes.Cut(p.line, []byte("\n"))
		if !found {
			return len(part), p.err
		}
		p.read(line)
		p.line = rest
	}
}

// Close prints what a killed command has left: the output of tests that have not ended.
func (p *Printer) Close() error {
	if len(p.line) > 0 {
		p.read(p.line)
		p.line = nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.packages)) {
		p.printUnfinished(name)
	}
	return p.err
}

func (p *Printer) read(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		p.print(string(line) + "\n") // of the go command itself
		return
	}
	switch {
	case e.Action == "output" && p.all:
		p.print(e.Output)
	case e.Action == "output" && e.Test == "":
		p.result(e)
	case e.Action == "output":
		p.keep(e)
	case e.Action == "build-output":
		p.print(e.Output)
	case e.Action == "run":
		p.begin(e)
	case e.Action != "pass" && e.Action != "fail" && e.Action != "skip":
		// start, pause, cont and others have nothing to print
	case e.Test != "":
		p.end(e)
	case e.Action == "fail":
		p.printUnfinished(e.Package)
		if !slices.ContainsFunc(p.failed, func(f string) bool { return strings.HasPrefix(f, e.Package+" ") }) {
			p.failed = append(p.failed, e.Package)
		}
	default:
		delete(p.packages, e.Package)
	}
}

// result keeps what a package has written outside its tests, such as the seed of -shuffle, until
// the package's result, which it prints. As "go test" does, it prints the rest only if the
// package has failed.
func (p *Printer) result(e event) {
	state, _, _ := strings.Cut(e.Output, "\t")
	switch state {
	case "ok  ", "?   ":
		p.of(e.Package).own.Reset()
		p.print(e.Output)
	case "FAIL":
		p.printUnfinished(e.Package)
		p.print(e.Output)
	default:
		if own := &p.of(e.Package).own; own.Len() < most && e.Output != "PASS\n" && e.Output != "FAIL\n" {
			own.WriteString(e.Output)
		}
	}
}

// keep keeps the output of a test until the test has ended.
func (p *Printer) keep(e event) {
	if strings.HasPrefix(e.Output, "=== ") {
		return
	}
	if b := p.of(e.Package).output(e.Test); b.Len() < most {
		b.WriteString(e.Output)
	}
}

func (p *Printer) of(name string) *tests {
	if p.packages[name] == nil {
		p.packages[name] = &tests{running: make(map[string]*bytes.Buffer), parents: make(map[string]bool)}
	}
	return p.packages[name]
}

func (t *tests) output(test string) *bytes.Buffer {
	if t.running[test] == nil {
		t.running[test] = new(bytes.Buffer)
	}
	return t.running[test]
}

// begin notes the parents of a subtest. Its own name may contain a slash, too.
func (p *Printer) begin(e event) {
	for i, r := range e.Test {
		if r == '/' {
			p.of(e.Package).parents[e.Test[:i]] = true
		}
	}
}

// end counts a test, and prints its output if it has failed.
func (p *Printer) end(e event) {
	t := p.of(e.Package)
	leaf := !t.parents[e.Test]
	if leaf && e.Action != "skip" {
		p.count(e)
	}
	if leaf && e.Action == "fail" {
		p.failed = append(p.failed, e.Package+" "+e.Test)
	}
	output := t.output(e.Test).String()
	delete(t.running, e.Test)
	switch {
	case e.Action == "fail":
		p.print(headed(output))
	case isStray(output) && t.stray.Len() < most:
		t.stray.WriteString(output)
	}
}

// headed moves the line with the result to the beginning, as "go test" without -v has it.
func headed(output string) string {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "--- FAIL: ") {
			before, after, _ := strings.Cut(output, line)
			return line + before + after
		}
	}
	return output
}

// isStray reports whether a test's output has lines that are neither its result nor its log.
func isStray(output string) bool {
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "--- ") {
			return true
		}
	}
	return false
}

// printUnfinished prints what can explain why a package has failed: the output of tests that
// have not ended, such as a panic, and what passed tests have written past their log.
func (p *Printer) printUnfinished(name string) {
	t := p.packages[name]
	if t == nil {
		return
	}
	p.print(t.own.String())
	for _, test := range slices.Sorted(maps.Keys(t.running)) {
		if output := t.running[test].String(); output != "" {
			p.print(fmt.Sprintf("--- not ended: %s\n%s", test, output))
		}
	}
	if t.stray.Len() > 0 {
		p.print(fmt.Sprintf("--- written by tests of %s that passed:\n%s", name, t.stray.String()))
	}
	delete(p.packages, name)
}

func (p *Printer) print(text string) {
	if text == "" {
		return
	}
	if _, err := io.WriteString(p.to, text); err != nil && p.err == nil {
		p.err = err
	}
}
