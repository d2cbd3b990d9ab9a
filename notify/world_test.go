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
	"go.uber.org/goleak"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/notify"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// never is a pause that outlasts every test: whoever gets on was woken.
const never = time.Hour

// A world is a table, and a listener that waiters have.
type world struct {
	*testing.T
	db  *dbtest.DB
	dsn string
	// name is that of the listener's connections in pg_stat_activity, and a region: all
	// tests hear what is told in the one database.
	name     string
	waiting  *flaky.Connector // what waiters ask through
	pool     *sqlx.DB         // the same
	listener *notify.Listener
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := newSilentWorld(t)
	listener, err := notify.Listen(t.Context(), w.dsn, nil)
	must(t, err)
	w.use(listener)
	return w
}

// newSilentWorld has no listener yet.
func newSilentWorld(t *testing.T) *world {
	t.Helper()
	db := dbtest.Postgres(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	schema, err := url.Parse(db.DSN)
	must(t, err)
	name := schema.Query().Get("search_path")
	name = name[:min(len(name), 60)]
	waiting := flaky.New(db.DB.Driver(), db.DSN)
	pool := sqlx.NewDb(sql.OpenDB(waiting), db.Driver)
	t.Cleanup(func() { _ = pool.Close() }) // a call that was cut short leaves a broken connection
	dsn := db.With(t, map[string]string{"application_name": name})
	return &world{T: t, db: db, dsn: dsn, name: name, waiting: waiting, pool: pool}
}

// use makes l the listener, which is closed before the database is dropped.
func (w *world) use(l *notify.Listener) {
	w.listener = l
	w.Cleanup(func() { must(w.T, l.Close()) })
}

// process returns a repository over a pool, in the world's region unless opts have another.
func (w *world) process(db *sqlx.DB, opts sqllock.RepositoryOptions) *sqllock.Repository {
	w.Helper()
	if opts.Region == "" {
		opts.Region = w.name
	}
	r, err := sqllock.NewRepository(db, dialect.Postgres(), &opts)
	must(w.T, err)
	return r
}

// holder returns a repository whose releases notify.
func (w *world) holder() *sqllock.Repository {
	w.Helper()
	return w.process(w.db.DB, sqllock.RepositoryOptions{Notify: true})
}

// taken acquires a lock and returns what releases it.
func (w *world) taken(r *sqllock.Repository, key string) (release func()) {
	w.Helper()
	holder := r.NewHolder()
	got, err := r.Acquire(w.Context(), key, holder, never)
	must(w.T, err)
	if !got.Acquired {
		w.Fatalf("%q is held: %+v", key, got.Row)
	}
	return func() {
		w.Helper()
		if deleted, err := r.Delete(w.Context(), key, holder); err != nil || !deleted {
			w.Errorf("release of %q: %v, %v", key, deleted, err) // not Fatal: any goroutine calls it
		}
	}
}

// waiters returns a registry of another process, which looks each idle and listens.
func (w *world) waiters(idle time.Duration) *sqllock.Registry {
	w.Helper()
	repository := w.process(w.pool, sqllock.RepositoryOptions{})
	r, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: never, IdleBetweenTries: idle, Waker: w.listener})
	must(w.T, err)
	w.Cleanup(func() { must(w.T, r.Close(context.Background())) })
	return r
}

// waiter waits for a lock, and sends what became of it. When waiter returns, it has
// subscribed, has looked once more, and goes to sleep.
func (w *world) waiter(ctx context.Context, r *sqllock.Registry, key string) <-chan error {
	w.Helper()
	looked, topics := make(chan struct{}, 1), w.listener.Topics()
	w.waiting.Follow(func(_ context.Context, m flaky.Moment) error {
		if m.Op == flaky.Query && m.Done && w.listener.Topics() > topics {
			select {
			case looked <- struct{}{}:
			default:
			}
		}
		return nil
	})
	l, err := r.Obtain(key)
	must(w.T, err)
	got := make(chan error, 1)
	go func() {
		lease, err := l.Lock(ctx)
		if err == nil {
			err = lease.Unlock(ctx)
		}
		got <- err
	}()
	wait(w.T, looked)
	return got
}

// until waits for a state that nobody tells.
func (w *world) until(what string, reached func() bool) {
	w.Helper()
	for deadline := time.Now().Add(30 * time.Second); !reached(); {
		if time.Now().After(deadline) {
			w.Fatalf("never %s", what)
		}
		wait(w.T, time.After(time.Millisecond))
	}
}

// woken checks that a waiter gets its lock.
func (w *world) woken(got <-chan error) {
	w.Helper()
	must(w.T, wait(w.T, got))
}

// asleep checks that a waiter has got nothing.
func (w *world) asleep(got <-chan error) {
	w.Helper()
	select {
	case err := <-got:
		w.Fatalf("did not wait: %v", err)
	default:
	}
}

// told waits until everything that was told before has arrived: PostgreSQL tells in the
// order of commits.
func (w *world) told() {
	w.Helper()
	wake, stop := w.listener.Watch("the end")
	defer stop()
	_, err := w.db.DB.ExecContext(w.Context(), "SELECT pg_notify('sqllock', 'the end')")
	must(w.T, err)
	wait(w.T, wake)
}

// connections counts the listener's connections at the server.
func (w *world) connections() (n int) {
	w.Helper()
	must(w.T, w.db.DB.GetContext(w.Context(), &n,
		"SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = $1", w.name))
	return n
}

// kill ends the listener's connection at the server.
func (w *world) kill() {
	w.Helper()
	var killed []bool
	must(w.T, w.db.DB.SelectContext(w.Context(), &killed,
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", w.name))
	if len(killed) != 1 {
		w.Fatalf("%d connections", len(killed))
	}
}

// An overheard is all that is told about the table of a world.
type overheard struct {
	w        *world
	conn     *pgconn.PgConn
	payloads []string
}

func (w *world) overhear() *overheard {
	w.Helper()
	config, err := pgconn.ParseConfig(w.db.DSN)
	must(w.T, err)
	o := &overheard{w: w}
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { o.payloads = append(o.payloads, n.Payload) }
	o.conn, err = pgconn.ConnectConfig(w.Context(), config)
	must(w.T, err)
	w.Cleanup(func() { must(w.T, o.conn.Close(context.Background())) })
	must(w.T, o.conn.Exec(w.Context(), "LISTEN sqllock").Close())
	return o
}

// since returns what was told in the world's region since it was asked last: table and
// LOCK_KEY.
func (o *overheard) since() []string {
	o.w.Helper()
	// Its own notification arrives behind all that were committed before.
	must(o.w.T, o.conn.Exec(o.w.Context(), "NOTIFY sqllock, 'the end'").Close())
	var own []string
	for _, payload := range o.payloads {
		if fields := strings.Split(payload, "\t"); len(fields) == 3 && fields[1] == o.w.name {
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
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
