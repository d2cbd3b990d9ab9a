package cronlock_test

import (
	"sync"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/pagecode"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

var (
	must = check.Must
	is   = check.Is
)

func TestMain(m *testing.M) { testmain.Run(m) }

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
