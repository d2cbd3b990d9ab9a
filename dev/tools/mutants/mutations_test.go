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

func TestATextThatOccursTwiceIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const text = "one two one\n"
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, m := range []mutation{
		{edits: []edit{{"file", "one", "three"}}},
		{edits: []edit{{"file", "two", "four"}, {"file", "three", "five"}}},
		{edits: []edit{{"missing", "one", "two"}}},
	} {
		if _, err := m.apply(dir); err == nil {
			t.Errorf("%+v was applied", m.edits)
		}
		if got := read(t, dir, "file"); got != text {
			t.Errorf("%+v: %q was left", m.edits, got)
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	const summary = "simulation: seeds 5 to 9, 4 worlds, 1h0m0s of virtual time, 100 acquisitions\n"
	for _, test := range []struct {
		output     string
		passed     bool
		kind, seed string
		worlds     int
		fault      bool
	}{
		{summary + "PASS\n", true, "", "", 4, false},
		{
			summary + "    simulation_test.go:251: two holders: \"k1\": p1.1 and p2.1\n        Repeat it with: make simulate SEED=7\n" +
				"    simulation_test.go:251: taken: \"k1\"\n        Repeat it with: make simulate SEED=8\n",
			false, "two holders", "7", 4, false,
		},
		{
			summary + "    simulation_test.go:251: error: p1: an error of no kind: one\n        two\n        Repeat it with: make simulate SEED=6\n",
			false, "error", "6", 4, false,
		},
		{"simulation: seed 7, 5m0s of virtual time, 10 acquisitions, history ab\nPASS\n", true, "", "", 1, false},
		{"panic: oh\n", false, "", "", 0, true},
		{"PASS\n", true, "", "", 0, true},
	} {
		v := verdict{output: test.output}
		v.read(test.passed)
		if v.kind != test.kind || v.seed != test.seed || v.worlds != test.worlds || (v.fault != "") != test.fault {
			t.Errorf("%q gives %+v", test.output, v)
		}
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
