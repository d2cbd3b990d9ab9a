package cleanup_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cleanup"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/migrations"
)

var must = check.Must

func TestMain(m *testing.M) {
	testmain.Run(m)
}

// newRegistry returns a registry with two expired rows and one unused lock.
func newRegistry(t *testing.T) (*sqllock.Registry, *dbtest.DB) {
	t.Helper()
	db := dbtest.SQLite(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	repository, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, nil)
	must(t, err)
	registry, err := sqllock.NewRegistry(repository, nil)
	must(t, err)
	t.Cleanup(func() { must(t, registry.Close(context.Background())) })
	for _, key := range []string{"a", "b"} {
		_, err := repository.Acquire(t.Context(), key, repository.NewHolder(), sqllock.MinTTL)
		must(t, err)
	}
	for row := (sqllock.Row{}); !row.Expired(); {
		row, _, err = repository.Peek(t.Context(), "b")
		must(t, err)
	}
	_, err = registry.Obtain("unused")
	must(t, err)
	return registry, db
}

func TestOnce(t *testing.T) {
	t.Parallel()
	registry, _ := newRegistry(t)
	var log bytes.Buffer
	opts := &cleanup.Options{Age: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	got, err := cleanup.Once(t.Context(), registry, opts)
	must(t, err)
	if got != (cleanup.Result{Forgotten: 1, Deleted: 2}) {
		t.Fatalf("%+v", got)
	}
	if line := log.String(); !strings.Contains(line, "level=INFO") || !strings.Contains(line, "forgotten=1 deleted=2") {
		t.Fatal(line)
	}
	log.Reset()
	got, err = cleanup.Once(t.Context(), registry, opts)
	must(t, err)
	if got != (cleanup.Result{}) || log.Len() != 0 {
		t.Fatalf("%+v %s", got, log.String())
	}
}

func TestOnceReportsErrors(t *testing.T) {
	t.Parallel()
	registry, db := newRegistry(t)
	_, err := db.DB.ExecContext(t.Context(), "DROP TABLE INT_LOCK")
	must(t, err)
	var log bytes.Buffer
	opts := &cleanup.Options{Age: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	got, err := cleanup.Once(t.Context(), registry, opts)
	if !errors.Is(err, sqllock.ErrSchema) || got.Forgotten != 1 {
		t.Fatalf("%+v %v", got, err)
	}
	if !strings.Contains(log.String(), "level=WARN") {
		t.Fatal(log.String())
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	registry, _ := newRegistry(t)
	for _, opts := range []*cleanup.Options{{Interval: -1}, {Age: -1}} {
		if _, err := cleanup.Once(t.Context(), registry, opts); !errors.Is(err, sqllock.ErrInvalid) {
			t.Error(err)
		}
		check.Is(t, cleanup.Run(t.Context(), registry, opts), sqllock.ErrInvalid)
	}
}

// rounds sends each line of a log to a channel.
type rounds chan string

func (r rounds) Write(line []byte) (int, error) {
	r <- string(line)
	return len(line), nil
}

func TestRunRepeatsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	registry, db := newRegistry(t)
	ctx, cancel := context.WithCancel(t.Context())
	log := make(rounds, 100)
	ended := make(chan error)
	go func() {
		ended <- cleanup.Run(ctx, registry, &cleanup.Options{
			Interval: time.Millisecond, Age: time.Hour,
			Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
	}()
	if first := <-log; !strings.Contains(first, "deleted=2") {
		t.Error(first)
	}
	if second := <-log; !strings.Contains(second, "deleted=0") {
		t.Error(second)
	}
	for _, outage := range []struct{ begins, shows string }{
		{"ALTER TABLE INT_LOCK RENAME TO AWAY", "level=WARN"}, {"ALTER TABLE AWAY RENAME TO INT_LOCK", "deleted=0"},
	} {
		db.DB.MustExec(outage.begins)
		for line := <-log; !strings.Contains(line, outage.shows); {
			line = <-log
		}
	}
	cancel()
	for {
		select {
		case <-log:
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			return
		}
	}
}

func TestRunEndsWithTheRegistry(t *testing.T) {
	t.Parallel()
	registry, _ := newRegistry(t)
	must(t, registry.Close(t.Context()))
	if err := cleanup.Run(t.Context(), registry, nil); !errors.Is(err, sqllock.ErrClosed) {
		t.Fatal(err)
	}
}
