package tests_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/pressly/goose/v3"
	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/gocronlock"
	"github.com/sqllock/sqllock/adapters/gooselock"
	"github.com/sqllock/sqllock/adapters/httplock"
	"github.com/sqllock/sqllock/sync/job"
	"github.com/sqllock/sqllock/sync/leader"
)

// The functions below are the code of the pages, which TestPages compares with them. The compiler
// checks them; the other tests run the same calls.
var _ = []any{withLocker, withElector, migrate, handle, withCron, onceANight}

func report(context.Context) error { return nil }

func withLocker(registry *sqllock.Registry) error {
	locker := gocronlock.New[gocron.Lock](registry, &gocronlock.Options{MinHold: 30 * time.Second})
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return err
	}
	_, err = scheduler.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(report), gocron.WithName("report"))
	if err != nil {
		return err
	}
	_, err = scheduler.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(job.New(registry, "report", 30*time.Second, report)))
	return err
}

func withElector(ctx context.Context, registry *sqllock.Registry) error {
	elector, err := leader.New(registry, "scheduler", nil)
	if err != nil {
		return err
	}
	go func() {
		err := elector.Run(ctx, func(ctx context.Context, _ *sqllock.Lease) error {
			<-ctx.Done()
			return ctx.Err()
		})
		log.Print("the election has ended: ", err)
	}()
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		return err
	}
	return scheduler.Shutdown()
}

func migrate(db *sql.DB, files fs.FS, registry *sqllock.Registry) (*goose.Provider, error) {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithLocker(gooselock.New(registry, "goose")))
	return provider, err
}

func handle(mux *http.ServeMux, registry *sqllock.Registry, putOrder func(http.ResponseWriter, *http.Request)) {
	orders := httplock.New(registry, func(r *http.Request) string { return "orders/" + r.PathValue("id") }, &httplock.Options{
		OnError: func(r *http.Request, err error) { log.Print(r.URL.Path, ": ", err) },
	})
	mux.Handle("PUT /orders/{id}", orders(http.HandlerFunc(putOrder)))
}

func withCron(ctx context.Context, c *cron.Cron) error {
	_, err := c.AddFunc("@every 1m", func() { // c is a *cron.Cron of robfig/cron
		if err := report(ctx); err != nil && !errors.Is(err, sqllock.ErrNotAcquired) {
			slog.ErrorContext(ctx, "report", "error", err)
		}
	})
	return err
}

func onceANight(ctx context.Context, c *cron.Cron, registry *sqllock.Registry) error {
	nightly := job.New(registry, "nightly", 12*time.Hour, report, job.UntilSuccess())
	_, err := c.AddFunc("*/10 3-5 * * *", func() { // c is a *cron.Cron of robfig/cron; on every instance, from 3:00 to 5:50
		if err := nightly(ctx); err != nil && !errors.Is(err, sqllock.ErrNotAcquired) {
			slog.ErrorContext(ctx, "nightly", "error", err) // an instance tries again in ten minutes
		}
	})
	return err
}
