package gooselock_test

import (
	"context"
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/gooselock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sqllocktest"
)

var (
	must = check.Must
	is   = check.Is
)

// The interfaces of goose v3.29.0, package lock.
type (
	locker interface {
		Lock(ctx context.Context, db *sql.DB) error
		Unlock(ctx context.Context, db *sql.DB) error
	}
	sessionLocker interface {
		SessionLock(ctx context.Context, conn *sql.Conn) error
		SessionUnlock(ctx context.Context, conn *sql.Conn) error
	}
)

var (
	_ locker        = (*gooselock.Locker)(nil)
	_ sessionLocker = (*gooselock.Locker)(nil)
)

// TestOneInstanceMigratesAtATime has the second instance wait for a migration of a minute. Both ways
// of goose lock the same lock.
func TestOneInstanceMigratesAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		first, second := gooselock.New(r.Registry, "goose"), gooselock.New(r.Another(), "goose")
		must(t, first.Lock(t.Context(), nil))
		ended := make(chan time.Time)
		go func() {
			if err := second.SessionLock(t.Context(), nil); err != nil {
				t.Error(err)
			}
			ended <- time.Now()
		}()
		time.Sleep(time.Minute)
		unlocked := time.Now()
		must(t, first.Unlock(t.Context(), nil))
		if waited := (<-ended).Sub(unlocked); waited < 0 || waited > time.Second {
			t.Errorf("acquired %v after the release", waited)
		}
		must(t, second.SessionUnlock(t.Context(), nil))
	})
}

// TestALossIsReported loses the lock while goose migrates.
func TestALossIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		locker := gooselock.New(r.Registry, "goose")
		must(t, locker.Lock(t.Context(), nil))
		r.Lose("goose")
		is(t, locker.Unlock(t.Context(), nil), sqllock.ErrLockLost)
		is(t, locker.Unlock(t.Context(), nil), sqllock.ErrNotHeld)
	})
}
