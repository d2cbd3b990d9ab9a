package main

import (
	"strings"
	"testing"
)

// wantProblems compares problems with texts that they must contain, one each.
func wantProblems(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("got the problem %q, want %q", got[i], want[i])
		}
	}
}

func mustRead(t *testing.T, packages, exceptions, imports string) *rules {
	t.Helper()
	r, err := readRules(packages, exceptions, imports)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckFiles(t *testing.T) {
	t.Parallel()
	const (
		forth  = "p account.go ledger.go a deposit is booked\n"
		back   = "p ledger.go account.go a booking belongs to an account\n"
		single = "p report.go box.go a report is a box\n"
		none   = "p box.go report.go a box is a report\n"
	)
	for _, test := range []struct {
		name, budget, exceptions string
		problems                 []string
	}{
		{"a cycle", "0", "", []string{"package p: a cycle between files, which exceptions.txt does not allow\n" +
			"\tledger.go → account.go: Account\n\taccount.go → ledger.go: Account.book"}},
		{"an exception", "0", back, nil},
		{"the other exception", "0", forth, nil},
		{"a budget that is met", "2", "", nil},
		{"a budget with room", "3", "", []string{"package p: only 2 edges in cycles, write this number into packages.txt instead of 3"}},
		{"a budget that is exceeded", "1", "", []string{"package p: 2 edges in cycles, packages.txt allows 1"}},
		{"an exception makes room in the budget", "2", back, []string{"only 0 edges"}},
		{"a stale exception, in no cycle", "0", back + single, []string{
			`package p: no cycle needs report.go → box.go: box.get; remove the exception "a report is a box"`,
		}},
		{"a stale exception, no edge", "0", back + none, []string{
			`package p: box.go does not refer to report.go; remove the exception "a box is a report"`,
		}},
		{"two exceptions for one cycle", "0", forth + back, []string{
			`no cycle needs account.go → ledger.go: Account.book; remove the exception "a deposit is booked"`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := mustRead(t, "p "+test.budget, test.exceptions, "")
			wantProblems(t, checkFiles("p", loadFixture(t), r), test.problems...)
		})
	}
}

func TestCheckImports(t *testing.T) {
	t.Parallel()
	g := newGraph("cli", "cli/exec", "root", "table")
	g.add(edge{"cli", "cli/exec"}, "cli.go")
	g.add(edge{"cli/exec", "root"}, "exec.go")
	g.add(edge{"root", "table"}, "lock.go")
	const all = "table:\nroot: table\ncli/...: root cli/...\n"
	for _, test := range []struct {
		name, table, exceptions string
		problems                []string
	}{
		{"allowed", all, "", nil},
		{"a row that comes before its package", all + "later: root\n", "", nil},
		{"against the table", "root:\ntable: root\ncli/...: root cli/...", "", []string{"imports.txt does not allow root → table: lock.go"}},
		{"an exception", "root:\ntable:\ncli/...: root cli/...", "imports root table for now", nil},
		{"a stale exception, allowed", all, "imports root table for now", []string{`imports.txt allows root → table; remove the exception "for now"`}},
		{"a stale exception, no import", all, "imports table root for now", []string{`package table does not import root; remove the exception "for now"`}},
		{"no row", "root: table\ncli/...: root cli/...", "", []string{"package table has no row in imports.txt"}},
		{"a table with a cycle", "root: table\ntable: root\ncli/...: root cli/...", "", []string{"imports.txt allows a cycle of root table"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := mustRead(t, "", test.exceptions, test.table)
			wantProblems(t, checkImports(g, r), test.problems...)
		})
	}
}
