package main

import (
	"strings"
	"testing"
)

func TestCheckedInRules(t *testing.T) {
	t.Parallel()
	r := mustRead(t, packagesFile, exceptionsFile, importsFile)
	if len(r.packages) == 0 || len(r.imports) == 0 {
		t.Errorf("no rules: %v", r)
	}
	wantProblems(t, checkTable(r))
}

func TestBadRules(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ packages, exceptions, imports, want string }{
		{"root", "", "", `packages.txt: "root": want a package and a budget`},
		{"root -1", "", "", "want a package and a budget"},
		{"root 1\nroot 1", "", "", "a second row for root"},
		{"root 1", "root a.go b.go", "", `exceptions.txt: "root a.go b.go": want a package, two files and a reason`},
		{"root 1", "root a.go b.go x\nroot a.go b.go y", "", "a second exception for the same edge"},
		{"root 1", "rot a.go b.go because", "", "rot is not in packages.txt"},
		{"", "", "root table", `imports.txt: "root table": want a package, a colon`},
	} {
		_, err := readRules(test.packages, test.exceptions, test.imports)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v", test, err)
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, pkg string
		want         bool
	}{
		{"a", "a", true},
		{"a", "a/b", false},
		{"a/...", "a", true},
		{"a/...", "a/b/c", true},
		{"a/...", "ab", false},
		{".", ".", true},
	} {
		if got := covers(test.pattern, test.pkg); got != test.want {
			t.Errorf("covers(%q, %q) = %v", test.pattern, test.pkg, got)
		}
	}
}
