package main

import (
	"strings"
	"testing"
)

func loadFixture(t *testing.T) *graph {
	t.Helper()
	g, err := loadFiles(".", "testdata/fixture")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestReferences(t *testing.T) {
	t.Parallel()
	g := loadFixture(t)
	const compact = `fixture: 5 files, 6 edges; in cycles: 2 files, 2 edges
  account.go → ledger.go(1)
  box.go
  ledger.go → account.go(1) box.go(2)
  report.go → box.go(1) ledger.go(1) saver.go(2)
  saver.go
  cycle 1: account.go ledger.go
`
	const named = `fixture: 5 files, 6 edges; in cycles: 2 files, 2 edges
  account.go → ledger.go: Account.book
  ledger.go → account.go: Account
  ledger.go → box.go: box, box.value
  report.go → box.go: box.get
  report.go → ledger.go: total
  report.go → saver.go: saver, saver.save
  cycle 1: account.go ledger.go
`
	for names, want := range map[bool]string{false: compact, true: named} {
		if got := filesText("fixture", g, names); got != want {
			t.Errorf("names %v: got\n%s\nwant\n%s", names, got, want)
		}
	}
}

// TestNoCycleHere holds this program to its own rule.
func TestNoCycleHere(t *testing.T) {
	t.Parallel()
	g, err := loadFiles(".", ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range cycles("graph", g) {
		t.Error(problem)
	}
}

func TestLoadFailures(t *testing.T) {
	t.Parallel()
	for pkg, want := range map[string]string{
		"testdata/missing": "directory not found",
		"testdata":         "no Go files",
		"testdata/systems": "plan9.go is not built on this system",
	} {
		_, err := loadFiles(".", pkg)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", pkg, err, want)
		}
	}
}
