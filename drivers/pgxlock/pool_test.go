package pgxlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// A tracer counts statements.
type tracer struct{ statements atomic.Int64 }

func (t *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	t.statements.Add(1)
	return ctx
}

func (*tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestOpenPool has only BeforeConnect know the database, as it may be alone to know the password. All connections call
// it, also the one that listens, and the sessions are those of Open.
func TestOpenPool(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	config := check.Value(pgxpool.ParseConfig(db.DSN))(t)
	var before, after atomic.Int64
	traced := &tracer{}
	database := config.ConnConfig.Database
	config.ConnConfig.Database, config.ConnConfig.Tracer = "no_such_database", traced
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		before.Add(1)
		c.Database = database
		return nil
	}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		after.Add(1)
		_, err := c.Exec(ctx, "SET work_mem = '5MB'")
		return err
	}
	open := func() *sqllock.Registry {
		r := check.Value(pgxlock.OpenPool(t.Context(), config, &pgxlock.Options{Wake: true, Migrate: migrations.Up}))(t)
		t.Cleanup(func() { check.Must(t, r.Close(context.WithoutCancel(t.Context()))) })
		return r
	}
	a, b := open(), open()
	config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return errors.New("it was copied") }
	lease := check.Value(a.Lock(t.Context(), "k"))(t)
	waiting := check.Begin(func() error {
		lease, err := b.Lock(t.Context(), "k")
		if err == nil {
			err = lease.Unlock(t.Context())
		}
		return err
	})
	for b.Waiting()["k"] == 0 {
		time.Sleep(time.Millisecond)
	}
	check.Must(t, lease.Unlock(t.Context()))
	check.Must(t, <-waiting)
	if made, prepared := before.Load(), after.Load(); prepared < 2 || made < prepared+2 { // two of them listen
		t.Errorf("BeforeConnect was called %d times, AfterConnect %d times", made, prepared)
	}
	if traced.statements.Load() == 0 {
		t.Error("nothing was traced")
	}
	var names int
	check.Must(t, db.DB.GetContext(t.Context(), &names,
		"SELECT count(DISTINCT application_name) FROM pg_stat_activity WHERE datname = current_database() AND application_name IN ('sqllock', 'sqllock notify')"))
	check.Equal(t, "kinds of connections", names, 2)
}

// TestOpenPool_PatientHandler has pgx wait for a minute after the end of a context. A connection that was idle, and the one
// that listens, do not.
func TestOpenPool_PatientHandler(t *testing.T) {
	t.Parallel()
	config := check.Value(pgxpool.ParseConfig(dbtest.Postgres(t).DSN))(t)
	config.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn(), DeadlineDelay: time.Minute}
	}
	r := check.Value(pgxlock.OpenPool(t.Context(), config, &pgxlock.Options{Wake: true, Migrate: migrations.Up}))(t)
	began := time.Now()
	for range 2 {
		lease := check.Value(r.Lock(t.Context(), "k"))(t)
		check.Must(t, lease.Unlock(t.Context()))
		time.Sleep(1100 * time.Millisecond) // pgx pings connections that were idle for longer than a second
	}
	check.Must(t, r.Close(context.WithoutCancel(t.Context())))
	if took := time.Since(began); took >= time.Minute {
		t.Errorf("it took %v", took)
	}
}

func TestOpenPool_Invalid(t *testing.T) {
	t.Parallel()
	config := check.Value(pgxpool.ParseConfig("postgres://app@127.0.0.1:1/app?sslmode=disable"))(t)
	hooked := config.Copy()
	hooked.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return true, nil }
	for name, bad := range map[string]*pgxpool.Config{
		"nil": nil, "empty": {}, "not parsed": {ConnConfig: &pgx.ConnConfig{}}, "PrepareConn": hooked,
	} {
		_, err := pgxlock.OpenPool(t.Context(), bad, nil)
		if !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	errToken := errors.New("no token")
	config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return errToken }
	_, err := pgxlock.OpenPool(t.Context(), config, nil)
	check.Is(t, err, sqllock.ErrDatabase)
	check.Contains(t, err.Error(), "connect to postgres://app@127.0.0.1:1/app", "no token")
}
