package notify_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/notify"
)

func TestAReleaseWakesAWaiter(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"postgres", "pgx"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			db := w.db.OpenDSN(t, driver, w.db.DSN)
			release := w.taken(w.process(db, sqllock.RepositoryOptions{Notify: true}), "k")
			got := w.waiter(t.Context(), w.waiters(never), "k")
			w.asleep(got)
			release()
			w.woken(got)
		})
	}
}

// TestWithoutNotifyNobodyIsWoken shows that the test above can fail.
func TestWithoutNotifyNobodyIsWoken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := w.taken(w.process(w.db.DB, sqllock.RepositoryOptions{}), "k")
	ctx, cancel := context.WithCancel(t.Context())
	got := w.waiter(ctx, w.waiters(never), "k")
	release()
	w.told()
	w.asleep(got)
	cancel()
	if err := wait(t, got); !errors.Is(err, sqllock.ErrNotAcquired) {
		t.Fatal(err)
	}
}

func TestWaitersHandOnToEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const processes, rounds = 3, 10
	done := make(chan error, processes)
	for range processes {
		repository := w.holder()
		r, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: never, IdleBetweenTries: never, Waker: w.listener})
		must(t, err)
		go func() {
			defer func() { _ = r.Close(context.Background()) }()
			for range rounds {
				if err := r.ExecuteLocked(t.Context(), "k", func(context.Context) error { return nil }); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range processes {
		must(t, wait(t, done))
	}
}

func TestOthersWakeNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names, err := dialect.NamesFor("")
	must(t, err)
	repository := w.holder()
	key, err := repository.LockKey("k")
	must(t, err)
	wake, stop := w.listener.Watch(names.Topic(w.name, key))
	defer stop()

	_, err = w.db.DB.ExecContext(t.Context(), "CREATE TABLE other_lock (LIKE int_lock INCLUDING ALL); CREATE SEQUENCE other_lock_fence")
	must(t, err)
	w.taken(repository, "another key")()
	w.taken(w.process(w.db.DB, sqllock.RepositoryOptions{Notify: true, Region: w.name[1:]}), "k")()
	w.taken(w.process(w.db.DB, sqllock.RepositoryOptions{Notify: true, Prefix: "Other_"}), "k")()
	w.told()
	if len(wake) != 0 {
		t.Fatal("woken for another row")
	}
	w.taken(repository, "k")()
	wait(t, wake)
}

// TestTheConnectionIsMadeAnew releases while nobody listens.
func TestTheConnectionIsMadeAnew(t *testing.T) {
	t.Parallel()
	w, gate, told := newGatedWorld(t)
	release := w.taken(w.holder(), "k")
	got := w.waiter(t.Context(), w.waiters(never), "k")
	gate.close()
	w.kill()
	if err := wait(t, told); err == nil {
		t.Fatal("told that it is there")
	}
	if err := wait(t, told); !errors.Is(err, errGate) {
		t.Fatal(err)
	}
	release()
	w.asleep(got)
	gate.open()
	w.woken(got)
	for err := range told {
		if err == nil {
			break
		}
	}
	w.taken(w.holder(), "k")() // listens again, and has one connection
	if n := w.connections(); n != 1 {
		t.Fatalf("%d connections", n)
	}
}

func TestWithoutTheListenerWaitersPoll(t *testing.T) {
	t.Parallel()
	w, gate, told := newGatedWorld(t)
	release := w.taken(w.holder(), "k")
	got := w.waiter(t.Context(), w.waiters(20*time.Millisecond), "k")
	gate.close()
	w.kill()
	if err := wait(t, told); err == nil {
		t.Fatal("told that it is there")
	}
	release()
	w.woken(got)
}

func TestAfterCloseWaitersPoll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := w.taken(w.holder(), "k")
	r := w.waiters(20 * time.Millisecond)
	must(t, w.listener.Close())
	must(t, w.listener.Close())
	got := w.waiter(t.Context(), r, "k")
	release()
	w.woken(got)
	w.until("disconnected", func() bool { return w.connections() == 0 })
}

// TestASilentConnectionIsNoticed has a network that swallows everything.
func TestASilentConnectionIsNoticed(t *testing.T) {
	t.Parallel()
	w, gate, told := newGatedWorld(t)
	release := w.taken(w.holder(), "k")
	got := w.waiter(t.Context(), w.waiters(never), "k")
	gate.silence()
	release()
	if err := wait(t, told); err == nil {
		t.Fatal("told that it is there")
	}
	w.woken(got)
}

// TestAQuietConnectionStays asks the server a few times whether it is there.
func TestAQuietConnectionStays(t *testing.T) {
	t.Parallel()
	w, gate, told := newGatedWorld(t)
	written := gate.written()
	w.until("asked three times", func() bool { return gate.written() >= written+3 })
	if len(told) != 0 {
		t.Fatal(<-told)
	}
	release := w.taken(w.holder(), "k")
	got := w.waiter(t.Context(), w.waiters(never), "k")
	release()
	w.woken(got)
}

func TestManyKeysAndRegistriesShareOneConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool.SetMaxOpenConns(5)
	holder := w.holder()
	var releases []func()
	var waiting []<-chan error
	for n := range 5 {
		r := w.waiters(never)
		for k := range 10 {
			key := fmt.Sprintf("%d/%d", n, k)
			releases = append(releases, w.taken(holder, key))
			waiting = append(waiting, w.waiter(t.Context(), r, key))
		}
	}
	if n := w.connections(); n != 1 {
		t.Fatalf("%d connections", n)
	}
	for i, got := range waiting {
		w.asleep(got)
		releases[i]()
		w.woken(got)
	}
}

// TestReleasesAtOnceWakeAll has releases that may travel together.
func TestReleasesAtOnceWakeAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool.SetMaxOpenConns(5)
	holder, r := w.holder(), w.waiters(never)
	var releases []func()
	var waiting []<-chan error
	for n := range 30 {
		key := fmt.Sprint(n)
		releases = append(releases, w.taken(holder, key))
		waiting = append(waiting, w.waiter(t.Context(), r, key))
	}
	w.db.DB.SetMaxOpenConns(2)
	for _, release := range releases {
		go release()
	}
	for _, got := range waiting {
		w.woken(got)
	}
}

func TestAWaiterThatGivesUpIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.taken(w.holder(), "k")
	ctx, cancel := context.WithCancel(t.Context())
	got := w.waiter(ctx, w.waiters(never), "k")
	cancel()
	if err := wait(t, got); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if n := w.listener.Topics(); n != 0 {
		t.Fatalf("%d subscriptions", n)
	}
}

func TestListenRefuses(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]error{
		"postgres://localhost:port/db":                         sqllock.ErrInvalid,
		"postgres://localhost:1/db?connect_timeout=1":          sqllock.ErrDatabase,
		"host=/nowhere sslmode=disable user=nobody dbname=nil": sqllock.ErrDatabase,
	} {
		if _, err := notify.Listen(t.Context(), dsn, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

func TestListenRefusesAPooler(t *testing.T) {
	t.Parallel()
	db := dbtest.PgBouncer(t)
	_, err := notify.Listen(t.Context(), db.DSN, nil)
	if !errors.Is(err, notify.ErrPooled) || !errors.Is(err, sqllock.ErrDatabase) {
		t.Fatal(err)
	}
}

// TestListenUnderstandsDriversParameters has what lib/pq, pgx and its pool take out of a
// DSN.
func TestListenUnderstandsDriversParameters(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t)
	dsn := w.db.With(t, map[string]string{
		"binary_parameters": "yes", "disable_prepared_binary_result": "yes", "fallback_application_name": "app",
		"default_query_exec_mode": "exec", "statement_cache_capacity": "5", "description_cache_capacity": "5",
		"pool_max_conns": "4",
	})
	listener, err := notify.Listen(t.Context(), dsn, nil)
	must(t, err)
	w.use(listener)
	w.told()
}
