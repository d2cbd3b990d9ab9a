package notify_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/notify"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// TestWithoutNotifyNoWaiterIsWoken shows that the other tests can fail.
func TestWithoutNotifyNoWaiterIsWoken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	release := f.acquire(f.repository(f.db.DB, sqllock.RepositoryOptions{}), "k")
	ctx, cancel := context.WithCancel(t.Context())
	got := f.lockInBackground(ctx, f.registry(never), "k")
	release()
	f.waitForNotifications()
	f.checkWaiting(got)
	cancel()
	check.Is(t, wait(t, got), sqllock.ErrNotAcquired)
}

func TestWaitersWakeEachOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const processes, rounds = 3, 10
	done := make(chan error, processes)
	for range processes {
		repository := f.holder()
		r := check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: never, IdleBetweenTries: never, Waker: f.listener, NoRenew: true}))(t)
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

func TestReleasesOfOtherRowsWakeNoWaiter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	names := check.Value(sqltext.NamesFor(""))(t)
	repository := f.holder()
	key := check.Value(repository.LockKey("k"))(t)
	wake, stop := f.listener.Watch(names.Topic(f.name, key))
	defer stop()

	must(t, check.ErrorOf(f.db.DB.ExecContext(t.Context(), "CREATE TABLE other_lock (LIKE int_lock INCLUDING ALL); CREATE SEQUENCE other_lock_fence")))
	f.acquire(repository, "another key")()
	f.acquire(f.repository(f.db.DB, sqllock.RepositoryOptions{Notify: true, Region: f.name[1:]}), "k")()
	f.acquire(f.repository(f.db.DB, sqllock.RepositoryOptions{Notify: true, Prefix: "Other_"}), "k")()
	f.waitForNotifications()
	check.Equal(t, "wake-ups for other rows", len(wake), 0)
	f.acquire(repository, "k")()
	wait(t, wake)
}

// TestTheListenerReconnects releases a lock while the listener is disconnected.
func TestTheListenerReconnects(t *testing.T) {
	t.Parallel()
	f, network, connection := newGatedFixture(t, time.Minute)
	release := f.acquire(f.holder(), "k")
	got := f.lockInBackground(t.Context(), f.registry(never), "k")
	server := network.LeadTo("") // breaks the connection
	for range 2 {                // the connection breaks, and the next one is refused
		if err := wait(t, connection); err == nil {
			t.Fatal("reported as connected")
		}
	}
	release()
	f.checkWaiting(got)
	network.LeadTo(server)
	f.checkAcquired(got)
	for err := range connection {
		if err == nil {
			break
		}
	}
	f.acquire(f.holder(), "k")() // the listener has a single connection again
	check.Equal(t, "connections", f.connections(), 1)
}

func TestAfterCloseWaitersPoll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	release := f.acquire(f.holder(), "k")
	r := f.registry(20 * time.Millisecond)
	must(t, f.listener.Close())
	must(t, f.listener.Close())
	got := f.lockInBackground(t.Context(), r, "k")
	release()
	f.checkAcquired(got)
	f.until("disconnected", func() bool { return f.connections() == 0 })
}

// TestADeadConnectionIsDetected uses a network that drops all data.
func TestADeadConnectionIsDetected(t *testing.T) {
	t.Parallel()
	f, network, connection := newGatedFixture(t, time.Second)
	release := f.acquire(f.holder(), "k")
	got := f.lockInBackground(t.Context(), f.registry(never), "k")
	network.Freeze()
	release()
	if err := wait(t, connection); err == nil {
		t.Fatal("reported as connected")
	}
	f.checkAcquired(got)
}

// TestAnIdleConnectionIsKept lets the listener ping the server a few times.
func TestAnIdleConnectionIsKept(t *testing.T) {
	t.Parallel()
	f, network, connection := newGatedFixture(t, time.Minute)
	network.Trips() // those of the start
	pings := 0
	f.until("pinged three times", func() bool {
		pings += network.Trips()
		return pings >= 3
	})
	if len(connection) != 0 {
		t.Fatal(<-connection)
	}
	release := f.acquire(f.holder(), "k")
	got := f.lockInBackground(t.Context(), f.registry(never), "k")
	release()
	f.checkAcquired(got)
}

// TestManyKeysAndRegistriesShareOneConnection releases half of the keys one by one, and the others at once: those
// releases may be batched.
func TestManyKeysAndRegistriesShareOneConnection(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.pool.SetMaxOpenConns(5)
	holder := f.holder()
	var releases []func()
	var waiting []<-chan error
	for n := range 6 {
		r := f.registry(never)
		for k := range 10 {
			key := fmt.Sprintf("%d/%d", n, k)
			releases = append(releases, f.acquire(holder, key))
			waiting = append(waiting, f.lockInBackground(t.Context(), r, key))
		}
	}
	check.Equal(t, "connections", f.connections(), 1)
	const oneByOne = 30
	for i, release := range releases[:oneByOne] {
		f.checkWaiting(waiting[i])
		release()
		f.checkAcquired(waiting[i])
	}
	f.db.DB.SetMaxOpenConns(2)
	for _, release := range releases[oneByOne:] {
		go release()
	}
	for _, got := range waiting[oneByOne:] {
		f.checkAcquired(got)
	}
}

func TestAWaiterThatGivesUpUnsubscribes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.acquire(f.holder(), "k")
	ctx, cancel := context.WithCancel(t.Context())
	got := f.lockInBackground(ctx, f.registry(never), "k")
	cancel()
	check.Is(t, wait(t, got), context.Canceled)
	check.Equal(t, "subscriptions", f.listener.Topics(), 0)
}

func TestListenRefuses(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]error{
		"postgres://localhost:port/db":                          sqllock.ErrInvalid,
		"postgres://localhost:1/db?connect_timeout=1":           sqllock.ErrDatabase,
		"host=/nowhere sslmode=disable user=missing dbname=nil": sqllock.ErrDatabase,
	} {
		if _, err := notify.Listen(t.Context(), dsn, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

func TestListenRefusesAPooler(t *testing.T) {
	t.Parallel()
	db := dbtest.PgBouncer(t)
	check.Is(t, check.ErrorOf(notify.Listen(t.Context(), db.DSN, nil)), notify.ErrPooled, sqllock.ErrInvalid)
}

// TestListenIgnoresParametersOfDrivers uses parameters that lib/pq, pgx and its pool remove from a DSN.
func TestListenIgnoresParametersOfDrivers(t *testing.T) {
	t.Parallel()
	f := newFixtureWithoutListener(t)
	dsn := f.db.With(t, map[string]string{
		"binary_parameters": "yes", "disable_prepared_binary_result": "yes", "fallback_application_name": "app",
		"default_query_exec_mode": "exec", "statement_cache_capacity": "5", "description_cache_capacity": "5",
		"pool_max_conns": "4",
	})
	listener := check.Value(notify.Listen(t.Context(), dsn, nil))(t)
	f.setListener(listener)
	f.waitForNotifications()
}

// TestNotifiedDeletions runs everything that deletes a row, and calls that delete none.
func TestNotifiedDeletions(t *testing.T) {
	t.Parallel()
	f := newFixtureWithoutListener(t)
	o := f.record()
	r := f.repository(f.db.DB, sqllock.RepositoryOptions{Notify: true, Keys: sqllock.PlainKeys})
	notifies := func(what string, want ...string) {
		t.Helper()
		got := o.next()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%s notified %q, want %q", what, got, want)
		}
	}

	release := f.acquire(r, "ä b")
	notifies("an acquisition")
	check.Equal(t, "renewed", check.Value(r.Renew(t.Context(), "ä b", "another holder", never))(t), false)
	check.Equal(t, "deleted", check.Value(r.Delete(t.Context(), "ä b", "another holder"))(t), false)
	notifies("the release of another holder")
	release()
	notifies("a release", "int_lock ä b")

	f.acquire(r, "a")
	f.acquire(r, "b")
	must(t, r.ReleaseAll(t.Context()))
	notifies("ReleaseAll", "int_lock a", "int_lock b")

	f.acquire(r, "fresh")
	for _, key := range []string{"c", "d"} {
		// real time: rows that expire, which no holder keeps
		must(t, check.ErrorOf(r.Acquire(t.Context(), key, r.NewHolder(), sqllock.MinTTL)))
	}
	f.until("expired", func() bool {
		row, _, err := r.Peek(t.Context(), "d")
		must(t, err)
		return row.Expired()
	})
	deleted := check.Value(r.DeleteExpired(t.Context()))(t)
	check.Equal(t, "deleted", deleted, 2)
	notifies("DeleteExpired", "int_lock c", "int_lock d")

	registry := check.Value(sqllock.NewRegistry(r, &sqllock.RegistryOptions{TTL: time.Minute, NoRenew: true}))(t)
	lock := check.Value(registry.Obtain("e"))(t)
	must(t, check.Value(lock.WithMinHold(time.Minute).Lock(t.Context()))(t).Unlock(t.Context()))
	notifies("Unlock with a minimum hold")
}

// TestTrigger creates the triggers of docs/waiting.md, deletes a row as Spring does, and releases that of a busy key.
func TestTrigger(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	o := f.record()
	f.createTrigger()

	quiet := f.repository(f.db.DB, sqllock.RepositoryOptions{Keys: sqllock.PlainKeys})
	f.acquire(quiet, "a")()
	check.Same(t, "the trigger notified", o.next(), []string{"int_lock a"})
	both := f.repository(f.db.DB, sqllock.RepositoryOptions{Keys: sqllock.PlainKeys, Notify: true})
	f.acquire(both, "b")()
	check.Same(t, "trigger and Notify notified", o.next(), []string{"int_lock b"})

	options := sqllock.RepositoryOptions{Region: f.name, Keys: sqllock.PlainKeys}
	parking := check.Value(sqllock.NewRepository(dbtest.Unhurried(t.Context()), f.db.DB.DB, dialect.Postgres().WithoutScans(), &options))(t)
	registry := check.Value(sqllock.NewRegistry(parking, &sqllock.RegistryOptions{TTL: time.Minute}))(t)
	releases, parked := 0, 0
	f.until("was the row of a busy key parked", func() bool {
		for range 60 { // not looking: on a slow machine a key would never be busy
			must(t, check.Value(registry.TryLock(t.Context(), "busy"))(t).Unlock(t.Context()))
			releases++
		}
		must(t, f.db.DB.GetContext(t.Context(), &parked, "SELECT COUNT(*) FROM INT_LOCK WHERE REGION = $1 AND LOCK_KEY = 'busy'", f.name))
		return parked == 1
	})
	check.Same(t, "the triggers notified", o.next(), slices.Repeat([]string{"int_lock busy"}, releases))
	must(t, registry.Close(t.Context()))

	f.acquire(f.repository(f.db.DB, sqllock.RepositoryOptions{}), "k")
	got := f.lockInBackground(t.Context(), f.registry(never), "k")
	f.checkWaiting(got)
	must(t, check.ErrorOf(f.db.DB.ExecContext(t.Context(), "DELETE FROM INT_LOCK WHERE REGION = $1", f.name)))
	f.checkAcquired(got)
}

var sqlBlock = regexp.MustCompile("(?s)```sql\n(CREATE .*?)```")

func (f *fixture) createTrigger() {
	f.Helper()
	doc := check.Value(os.ReadFile("../../docs/waiting.md"))(f.T)
	block := sqlBlock.FindSubmatch(doc)
	if block == nil {
		f.Fatal("docs/waiting.md has no trigger")
	}
	must(f.T, check.ErrorOf(f.db.DB.ExecContext(f.Context(), string(block[1]))))
}
