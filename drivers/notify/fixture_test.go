package notify_test

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/notify"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/internal/test/wire"
	"github.com/sqllock/sqllock/migrations"
)

var must = check.Must

func TestMain(m *testing.M) {
	testmain.Run(m)
}

// never is a polling interval that no test outlasts: a waiter that goes on was woken up.
const never = time.Hour

// A fixture is a lock table, and a listener for the waiters.
type fixture struct {
	*testing.T
	db  *dbtest.DB
	dsn string
	// name is the application_name of the listener's connections, and the region: all tests receive all notifications
	// of the database.
	name     string
	waiting  *flaky.Connector // the waiters' connections
	pool     *sqlx.DB         // the pool over waiting
	listener *notify.Listener
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixtureWithoutListener(t)
	listener := check.Value(notify.Listen(t.Context(), f.dsn, nil))(t)
	f.setListener(listener)
	return f
}

// newFixtureWithoutListener returns a fixture that has no listener yet.
func newFixtureWithoutListener(t *testing.T) *fixture {
	t.Helper()
	db := dbtest.Postgres(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	schema := check.Value(url.Parse(db.DSN))(t)
	name := schema.Query().Get("search_path")
	name = name[:min(len(name), 60)]
	waiting := flaky.New(db.DB.Driver(), db.DSN)
	pool := sqlx.NewDb(sql.OpenDB(waiting), db.Driver)
	t.Cleanup(func() { _ = pool.Close() }) // a cancelled call leaves a broken connection
	dsn := db.With(t, map[string]string{"application_name": name})
	return &fixture{T: t, db: db, dsn: dsn, name: name, waiting: waiting, pool: pool}
}

// newGatedFixture returns a fixture whose listener pings often, and connects over a network that can fail. The
// channel receives what OnConnection is called with.
func newGatedFixture(t *testing.T, reply time.Duration) (*fixture, *wire.Proxy, chan error) {
	t.Helper()
	f, connection := newFixtureWithoutListener(t), make(chan error, 1000)
	dsn := check.Value(url.Parse(f.dsn))(t)
	network := wire.New(t, dsn.Host)
	dsn.Host = network.Addr
	listener, err := notify.ListenImpatiently(t.Context(), dsn.String(), reply, &notify.Options{
		OnConnection: func(err error) { connection <- err },
	})
	must(t, err)
	f.setListener(listener)
	return f, network, connection
}

// setListener sets the listener, which is closed before the database is dropped.
func (f *fixture) setListener(l *notify.Listener) {
	f.listener = l
	f.Cleanup(func() { must(f.T, l.Close()) })
}

// repository returns a repository over a pool, in the fixture's region unless opts have another.
func (f *fixture) repository(db *sqlx.DB, opts sqllock.RepositoryOptions) *sqllock.Repository {
	f.Helper()
	if opts.Region == "" {
		opts.Region = f.name
	}
	return check.Value(sqllock.NewRepository(dbtest.Unhurried(f.Context()), db.DB, dialect.Postgres(), &opts))(f.T)
}

// holder returns a repository whose releases notify.
func (f *fixture) holder() *sqllock.Repository {
	f.Helper()
	return f.repository(f.db.DB, sqllock.RepositoryOptions{Notify: true})
}

// acquire acquires a lock and returns a function that releases it.
func (f *fixture) acquire(r *sqllock.Repository, key string) (release func()) {
	f.Helper()
	holder := r.NewHolder()
	got := check.Value(r.Acquire(f.Context(), key, holder, never))(f.T)
	if !got.Acquired {
		f.Fatalf("%q is held: %+v", key, got.Row)
	}
	return func() {
		f.Helper()
		if deleted, err := r.Delete(f.Context(), key, holder); err != nil || !deleted {
			f.Errorf("release of %q: %v, %v", key, deleted, err) // not Fatal: any goroutine may call it
		}
	}
}

// registry returns the registry of another process, which polls every idle and uses the listener.
func (f *fixture) registry(idle time.Duration) *sqllock.Registry {
	f.Helper()
	repository := f.repository(f.pool, sqllock.RepositoryOptions{})
	r := check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: never, IdleBetweenTries: idle, Waker: f.listener, NoRenew: true}))(f.T)
	f.Cleanup(func() { must(f.T, r.Close(context.Background())) })
	return r
}

// lockInBackground locks key in a goroutine and sends the result. When it returns, the waiter has subscribed and
// polled once more, and is about to sleep.
func (f *fixture) lockInBackground(ctx context.Context, r *sqllock.Registry, key string) <-chan error {
	f.Helper()
	polled, topics := make(chan struct{}, 1), f.listener.Topics()
	f.waiting.Follow(func(_ context.Context, m flaky.Moment) error {
		if m.Op == flaky.Query && m.Done && f.listener.Topics() > topics {
			select {
			case polled <- struct{}{}:
			default:
			}
		}
		return nil
	})
	l := check.Value(r.Obtain(key))(f.T)
	got := make(chan error, 1)
	go func() {
		lease, err := l.Lock(ctx)
		if err == nil {
			err = lease.Unlock(ctx)
		}
		got <- err
	}()
	wait(f.T, polled)
	return got
}

// until polls until reached returns true.
func (f *fixture) until(what string, reached func() bool) {
	f.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !reached(); {
		if time.Now().After(deadline) {
			f.Fatalf("never %s", what)
		}
		// real time: between two polls
		wait(f.T, time.After(time.Millisecond))
	}
}

// checkAcquired checks that a waiter acquires its lock.
func (f *fixture) checkAcquired(got <-chan error) {
	f.Helper()
	must(f.T, wait(f.T, got))
}

// checkWaiting checks that a waiter is still waiting.
func (f *fixture) checkWaiting(got <-chan error) {
	f.Helper()
	select {
	case err := <-got:
		f.Fatalf("did not wait: %v", err)
	default:
	}
}

// waitForNotifications waits until all earlier notifications have arrived: PostgreSQL sends them in the order of
// commits.
func (f *fixture) waitForNotifications() {
	f.Helper()
	wake, stop := f.listener.Watch("the end")
	defer stop()
	must(f.T, check.ErrorOf(f.db.DB.ExecContext(f.Context(), "SELECT pg_notify('sqllock', 'the end')")))
	wait(f.T, wake)
}

// connections counts the listener's connections at the server.
func (f *fixture) connections() (n int) {
	f.Helper()
	must(f.T, f.db.DB.GetContext(f.Context(), &n,
		"SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = $1", f.name))
	return n
}

// A recorder receives all notifications of the database.
type recorder struct {
	f        *fixture
	conn     *pgconn.PgConn
	payloads []string
}

func (f *fixture) record() *recorder {
	f.Helper()
	config, err := pgconn.ParseConfig(f.db.DSN)
	must(f.T, err)
	o := &recorder{f: f}
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { o.payloads = append(o.payloads, n.Payload) }
	o.conn, err = pgconn.ConnectConfig(f.Context(), config)
	must(f.T, err)
	f.Cleanup(func() { must(f.T, o.conn.Close(context.Background())) })
	must(f.T, o.conn.Exec(f.Context(), "LISTEN sqllock").Close())
	return o
}

// next returns the notifications of the fixture's region since the last call: table and LOCK_KEY of each.
func (o *recorder) next() []string {
	o.f.Helper()
	// Its own notification arrives after all that were committed before.
	must(o.f.T, o.conn.Exec(o.f.Context(), "NOTIFY sqllock, 'the end'").Close())
	var own []string
	for _, payload := range o.payloads {
		if fields := strings.Split(payload, "\t"); len(fields) == 3 && fields[1] == o.f.name {
			own = append(own, fields[0]+" "+fields[2])
		}
	}
	o.payloads = nil
	return own
}

func wait[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(3 * time.Minute):
		t.Fatal("nothing received")
		panic("unreachable")
	}
}
