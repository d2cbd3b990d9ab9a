package cronlock_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/internal/test/pagecode"
)

func TestMain(m *testing.M) {
	child.Main(m, map[string]child.Role{"instance": instance})
}

// TestTheReadme finds the code of README.md in code that is compiled.
func TestTheReadme(t *testing.T) {
	t.Parallel()
	pagecode.Check(t, "README.md", "*_test.go")
}

// A log is a cron.Logger that keeps what it is given.
type log struct {
	mu     sync.Mutex
	skips  int
	errors []error
}

func (l *log) Info(string, ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skips++
}

func (l *log) Error(err error, _ string, _ ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errors = append(l.errors, err)
}

// logged returns how many runs were skipped, and the errors.
func (l *log) logged() (skips int, all []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.skips, l.errors
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Errorf("error %v, want %v", err, wanted)
	}
}
