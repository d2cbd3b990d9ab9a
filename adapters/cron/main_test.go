package cronlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock"
	cronlock "github.com/sqllock/sqllock/adapters/cron"
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

// The functions below are the code of README.md. The compiler checks them; the tests run the same
// calls.
var _ = []any{readme, wrapper}

func readme(ctx context.Context, registry *sqllock.Registry, sendReport func(context.Context) error) error {
	c := cron.New()
	_, err := c.AddJob("@every 1m", cronlock.Job(ctx, registry, "report", 30*time.Second, nil, sendReport))
	if err != nil {
		return err
	}
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done() // wait for jobs that run
	return nil
}

func wrapper(ctx context.Context, registry *sqllock.Registry, existing cron.Job) cron.Job {
	once := cronlock.Wrapper(ctx, registry, "report", 30*time.Second, nil)
	return cron.NewChain(once).Then(existing)
}
