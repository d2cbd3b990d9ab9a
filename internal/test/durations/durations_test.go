package durations_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/sqllock/sqllock/internal/test/durations"
	"github.com/sqllock/sqllock/internal/test/golden"
)

// recorded is the output of "go test -json -timeout 2s" for packages that pass, fail, panic,
// hang, and do not compile. One has a test of an hour in virtual time.
const recorded = "testdata/go-test.json"

func TestPrinter(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]bool{"failures": false, "all": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var printed strings.Builder
			p := durations.New(&printed, all)
			read(t, p, recorded)
			golden.Check(t, "testdata/"+name+".golden", printed.String())
			golden.Check(t, "testdata/list.golden", durations.List(p))
			want := []string{
				"example.com/app/builds", "example.com/app/fails TestParent/child", "example.com/app/panics TestPanic", "example.com/app/hangs",
			}
			if diff := cmp.Diff(want, durations.Failed(p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// read passes a file on in small parts, as a pipe may do.
func read(t *testing.T, p *durations.Printer, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	part := make([]byte, 100)
	for {
		n, err := iotest.HalfReader(file).Read(part)
		if n == 0 && err != nil {
			break
		}
		if _, err := p.Write(part[:n]); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestPrinterOfAKilledRun(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	p := durations.New(&printed, false)
	const cut = `{"Action":"output","Package":"p","Test":"TestLost","Output":"    why\n"}` + "\nno JSON"
	if _, err := p.Write([]byte(cut)); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	const want = "no JSON\n--- not ended: TestLost\n    why\n"
	if printed.String() != want {
		t.Errorf("printed %q, want %q", printed.String(), want)
	}
}

func TestPrinterKeepsLittle(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	p := durations.New(&printed, false)
	line := `{"Action":"output","Package":"p","Test":"TestLoud","Output":"` + strings.Repeat("x", 100_000) + `\n"}` + "\n"
	for range 50 {
		if _, err := p.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if n := printed.Len(); n < 1<<20 || n > 1<<20+200_000 {
		t.Errorf("%d bytes were kept", n)
	}
}

func TestPrinterReportsWriteErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	p := durations.New(failing{broken}, false)
	if _, err := p.Write([]byte("text\n")); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestListMarksLongTests(t *testing.T) {
	t.Parallel()
	p := durations.New(new(strings.Builder), false)
	var events strings.Builder
	for range 30 {
		events.WriteString(`{"Action":"run","Package":"p","Test":"TestParent/cell/Part/Test"}
{"Action":"pass","Package":"p","Test":"TestParent/cell/Part/Test","Elapsed":0.5}
{"Action":"pass","Package":"p","Test":"TestParent/cell/Part","Elapsed":9}
`)
	}
	for _, test := range strings.Split("abcdefghijklmnopqrstuvwxyzABCD", "") {
		events.WriteString(`{"Action":"pass","Package":"p","Test":"TestLong` + test + `","Elapsed":2.5}` + "\n")
	}
	if _, err := p.Write([]byte(events.String())); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(durations.List(p)), "\n")
	if len(lines) != 30 {
		t.Errorf("%d lines, want one for each long test:\n%s", len(lines), durations.List(p))
	}
	for _, line := range lines {
		if !strings.Contains(line, "2.50 s ! p TestLong") {
			t.Errorf("line %q", line)
		}
	}
}
