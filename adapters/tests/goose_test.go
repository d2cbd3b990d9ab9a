package tests_test

import (
	"context"
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/gooselock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sqllocktest"
)

// provider returns goose in one process, with one migration. goose and the registry use one pool.
func provider(t *testing.T, r *sqllocktest.Registry, with goose.ProviderOption, migrate func(context.Context) error) *goose.Provider {
	t.Helper()
	run := func(ctx context.Context, _ *sql.DB) error { return migrate(ctx) }
	p := check.Value(goose.NewProvider(goose.DialectSQLite3, r.DB(), nil,
		goose.WithGoMigrations(goose.NewGoMigration(1, &goose.GoFunc{RunDB: run}, nil)), with))(t)
	return p
}

// TestGooseMigratesOnce starts two processes at once, with a migration that takes minutes. They give
// their locker to goose in both ways.
func TestGooseMigratesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		running, ran := 0, 0
		migrate := func(context.Context) error {
			if running++; running > 1 {
				t.Error("two processes migrate")
			}
			time.Sleep(2 * time.Minute)
			running--
			ran++
			return nil
		}
		ended := make(chan error)
		for _, with := range []goose.ProviderOption{
			goose.WithLocker(gooselock.New(r.Registry, "goose")), goose.WithSessionLocker(gooselock.New(r.Another(), "goose")),
		} {
			p := provider(t, r, with, migrate)
			go func() {
				_, err := p.Up(t.Context())
				ended <- err
			}()
		}
		must(t, <-ended)
		must(t, <-ended)
		check.Equal(t, "runs of the migration", ran, 1)
	})
}

// TestGooseReportsALoss loses the lock while goose migrates.
func TestGooseReportsALoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		p := provider(t, r, goose.WithLocker(gooselock.New(r.Registry, "goose")), func(context.Context) error {
			r.Lose("goose")
			return nil
		})
		is(t, check.ErrorOf(p.Up(t.Context())), sqllock.ErrLockLost)
	})
}

// TestGooseNeedsASecondConnection has goose take the only connection of the pool that the registry
// uses: the lock fails, and goose does not migrate.
func TestGooseNeedsASecondConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		p := provider(t, r, goose.WithLocker(gooselock.New(r.Registry, "goose")), func(context.Context) error {
			t.Error("it migrates without a lock")
			return nil
		})
		r.DB().SetMaxOpenConns(1)
		began := time.Now()
		is(t, check.ErrorOf(p.Up(t.Context())), sqllock.ErrDatabase)
		if d := time.Since(began); d < 4*time.Second || d > 6*time.Second { // docs say five
			t.Errorf("it took %v", d)
		}
	})
}
