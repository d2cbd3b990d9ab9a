package engine_test

import (
	"context"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/fakedb"
)

// TestFrames holds how many calls of this module lie between a user and the driver, in the goroutine of the caller and
// in that of the batch: a developer who debugs a lock steps through all of them. docs/design.md lists them.
func TestFrames(t *testing.T) {
	var frames []string
	pool := fakedb.OpenWith(func(string) { frames = walk() })
	defer func() { check.Must(t, pool.Close()) }()
	repository := check.Value(sqllock.NewRepository(t.Context(), pool, dialect.Postgres(), &sqllock.RepositoryOptions{Layout: dialect.Spring7}))(t)
	registry := check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{NoRenew: true}))(t)
	lock := check.Value(registry.Obtain("orders/42"))(t)
	var lease *sqllock.Lease
	for _, call := range []struct {
		name string
		most int
		do   func(context.Context) error
	}{
		{"Lock", 16, func(ctx context.Context) (err error) {
			lease, err = lock.Lock(ctx)
			return err
		}},
		{"Unlock", 14, func(ctx context.Context) error { return lease.Unlock(ctx) }},
	} {
		check.Must(t, call.do(t.Context()))
		t.Logf("%s:\n\t%s", call.name, strings.Join(frames, "\n\t"))
		if n := len(frames); n == 0 || n > call.most {
			t.Errorf("%s: %d frames, want %d at most", call.name, n, call.most)
		}
	}
}

var (
	ownCall = regexp.MustCompile(`(?m)^github\.com/sqllock/sqllock[./](\S.*)\(.*\)$`)
	noCall  = regexp.MustCompile(`^internal/(test|engine_test)|_test\.`)
)

// walk returns the calls from the method of the user's to the statement, without those of other modules.
func walk() (frames []string) {
	buffer := make([]byte, 1<<20)
	goroutines := strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n")
	for _, of := range []string{"sqllock.(*JdbcLock).Lock(", "sqllock.(*Lease).Unlock(", "batch.(*lane["} {
		for _, goroutine := range goroutines {
			if !strings.Contains(goroutine, of) {
				continue
			}
			var calls []string
			for _, call := range ownCall.FindAllStringSubmatch(goroutine, -1) {
				if !noCall.MatchString(call[1]) {
					calls = append([]string{call[1]}, calls...)
				}
			}
			frames = append(frames, calls...)
		}
	}
	return frames
}
