package main

import (
	"os"
	"path/filepath"
	"testing"
)

// module is the root directory of the module.
const module = "../../.."

// TestEveryMutationAppliesOnce keeps the table in step with the source.
func TestEveryMutationAppliesOnce(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool)
	for _, m := range mutations {
		if m.name == "" || m.breaks == "" || m.danger == "" || len(m.edits) == 0 || names[m.name] {
			t.Errorf("%+v is not complete, or its name is another's, too", m)
		}
		names[m.name] = true
		dir := t.TempDir()
		for _, e := range m.edits {
			copyFile(t, e.file, dir)
		}
		undo, err := m.apply(dir)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		for _, e := range m.edits {
			if read(t, dir, e.file) == read(t, module, e.file) {
				t.Errorf("%s does not change %s", m.name, e.file)
			}
		}
		if err := undo(); err != nil {
			t.Fatal(err)
		}
		for _, e := range m.edits {
			if read(t, dir, e.file) != read(t, module, e.file) {
				t.Errorf("%s: %s was not restored", m.name, e.file)
			}
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	const summary = "simulation: seeds from 5 on, 4 worlds, 1h0m0s of virtual time, 100 acquisitions\n"
	for _, test := range []struct {
		output string
		passed bool
		kind   string
		seed   int
		fault  bool
	}{
		{summary + "PASS\n", true, "", 0, false},
		{"simulation: seed 7: 5m0s of virtual time, 10 acquisitions, history ab\nsimulation: seed 7: two holders: \"k1\"\n" + summary, false, "two holders", 7, false},
		{"panic: oh\n", false, "", 0, true},
		{"PASS\n", true, "", 0, true},
	} {
		v, err := verdictOf(test.output, test.passed)
		if v.kind != test.kind || v.seed != test.seed || (err != nil) != test.fault {
			t.Errorf("%q gives %+v, %v", test.output, v, err)
		}
	}
}

func TestFailedTest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		output string
		passed bool
		kind   string
		fault  bool
	}{
		{"--- PASS: TestBell (0.00s)\nPASS\n", true, "", false},
		{"--- PASS: TestBell (0.00s)\n--- FAIL: TestTell (0.00s)\n    --- FAIL: TestTell/one (0.00s)\nFAIL\n", false, "TestTell", false},
		{"panic: oh\n", false, "", true},
		{"PASS\n", true, "", true},
	} {
		v, err := failedTest(test.output, test.passed)
		if v.kind != test.kind || (err != nil) != test.fault {
			t.Errorf("%q gives %+v, %v", test.output, v, err)
		}
	}
}

// TestTable holds the table to the mutations, and a row to one line.
func TestTable(t *testing.T) {
	t.Parallel()
	seeds, err := readTable("seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "seeds.txt")
	if err := seeds.write(path); err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, filepath.Dir(path), "seeds.txt"), read(t, ".", "seeds.txt"); got != want {
		t.Errorf("the table is not as -search writes it, or has other mutants:\n%s", got)
	}
}

func copyFile(t *testing.T, name, to string) {
	t.Helper()
	path := filepath.Join(to, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(read(t, module, name)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
