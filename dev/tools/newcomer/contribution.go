//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The first contribution of a stranger: the error of a lock whose lease has ended speaks of a
// negative time.
const (
	testName    = "TestNewcomer"
	testFile    = "newcomer_test.go"
	changedFile = "errors.go"
	before      = "e.Left.Round("
	after       = "max(e.Left, 0).Round("
	theTest     = `package sqllock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

func TestNewcomer(t *testing.T) {
	t.Parallel()
	err := &sqllock.HeldError{Key: "orders/42", Holder: "alice", Left: -time.Second}
	if text := err.Error(); !strings.HasSuffix(text, "for another 0s") {
		t.Error(text)
	}
}
`
)

// The loop of CONTRIBUTING.md: what the first three commands do.
const (
	clone = iota
	oneTest
	allTests
)

// contribute follows the loop of a change in CONTRIBUTING.md, with empty caches, and without a C compiler.
func contribute(ctx context.Context, r *root, checkout string) error {
	text, err := readPage(checkout, "CONTRIBUTING.md")
	if err != nil {
		return err
	}
	loop, err := loopOf(text)
	if err != nil {
		return err
	}
	if err := command(ctx, checkout, "git", "clone", "--bare", "--quiet", ".", filepath.Join(r.dir, "srv/sqllock.git")); err != nil {
		return err
	}
	u := user{r, "/home/stranger"}
	if _, _, err := u.run(ctx, "git config --global url.file:///srv/sqllock.git.insteadOf https://"+module); err != nil {
		return err
	}
	s := stranger{user: u}
	path := func(name string) string { return filepath.Join(r.dir, u.home, "sqllock", name) }
	if err := s.succeeds(ctx, "", loop[clone]); err != nil {
		return err
	}
	if err := os.WriteFile(path(testFile), []byte(theTest), 0o600); err != nil {
		return err
	}
	if err := s.fails(ctx, ", the first time: it fails", loop[oneTest]); err != nil {
		return err
	}
	if err := change(path(changedFile)); err != nil {
		return err
	}
	if err := s.succeeds(ctx, ", after the change: it passes", loop[oneTest]); err != nil {
		return err
	}
	if err := s.succeeds(ctx, "", loop[allTests]); err != nil {
		return err
	}
	printTable("CONTRIBUTING.md", []string{"a first contribution"}, s.rows)
	return nil
}

// A stranger is a user who keeps the times.
type stranger struct {
	user
	rows []row
}

func (s *stranger) succeeds(ctx context.Context, remark, line string) error {
	took, _, err := s.run(ctx, line)
	s.add(line, remark, took)
	return err
}

// fails runs a command line whose test has to fail.
func (s *stranger) fails(ctx context.Context, remark, line string) error {
	took, output, err := s.run(ctx, line)
	s.add(line, remark, took)
	if err == nil || !strings.Contains(output, "--- FAIL: "+testName) {
		return fmt.Errorf("%s: the test has not failed: %v\n%s", line, err, output)
	}
	return nil
}

func (s *stranger) add(line, remark string, took times) {
	say("%s: %s", took, line)
	s.rows = append(s.rows, row{"`" + line + "`" + remark, []times{took}})
}

// loopOf returns the commands of the loop, with the name of the test.
func loopOf(text page) (loop []string, err error) {
	for _, line := range lines(text.blocks("sh")[0]) {
		loop = append(loop, strings.ReplaceAll(line, "TestName", testName))
	}
	if len(loop) <= allTests || !strings.HasPrefix(loop[clone], "git clone ") || !strings.Contains(loop[oneTest], testName) || !strings.HasSuffix(loop[allTests], " ./...") {
		err = fmt.Errorf("another loop of a change than this program follows: %q", loop)
	}
	return loop, err
}

func change(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := replaced(string(text), before, after)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(changed), 0o600)
}
