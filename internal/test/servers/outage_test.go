package servers_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/pqdriver"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/wire"
)

// closing is how many calls follow the end of all connections, one after the other.
const closing = 5

// A restart of the server, or a failover, closes all connections of a pool that were used just before. No call fails
// that can be sent again, whatever the driver and the pool, and no lock stays taken.
func TestOutage_ClosedConnectionsArePassedOver(t *testing.T) {
	t.Parallel()
	own := func(driver string) func(*testing.T, *dbtest.DB, string) (*sqllock.Registry, *sqlx.DB) {
		return func(t *testing.T, db *dbtest.DB, dsn string) (*sqllock.Registry, *sqlx.DB) {
			t.Helper()
			return registryOver(t, db, limited(db.OpenDSN(t, driver, dsn), closing), nil)
		}
	}
	opened := func(name string) func(*testing.T, *dbtest.DB, string) (*sqllock.Registry, *sqlx.DB) {
		return func(t *testing.T, _ *dbtest.DB, dsn string) (*sqllock.Registry, *sqlx.DB) {
			t.Helper()
			return byName(t, name).opened(t, dsn, openOptions{registry: sqllock.RegistryOptions{TTL: never}}), nil
		}
	}
	for name, c := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		make     func(t *testing.T, db *dbtest.DB, dsn string) (*sqllock.Registry, *sqlx.DB) // the pool is nil if it is Open's
	}{
		"pgx": {dbtest.Postgres, own("pgx")},
		"pgx, autocommit": {dbtest.Postgres, func(t *testing.T, db *dbtest.DB, dsn string) (*sqllock.Registry, *sqlx.DB) {
			t.Helper()
			return registryOver(t, db, limited(db.OpenDSN(t, "pgx", dsn), closing), &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit})
		}},
		"pgxpool": {dbtest.Postgres, func(t *testing.T, db *dbtest.DB, dsn string) (*sqllock.Registry, *sqlx.DB) {
			t.Helper()
			pool := sqlx.NewDb(stdlib.OpenDBFromPool(pgxPool(t, dsn)), "pgx")
			t.Cleanup(func() { must(t, pool.Close()) })
			return registryOver(t, db, pool, nil)
		}},
		"lib/pq":       {dbtest.Postgres, own("postgres")},
		"MySQL":        {dbtest.MySQL, own("mysql")},
		"Oracle MySQL": {dbtest.OracleMySQL, own("mysql")},
		"pgxlock":      {dbtest.Postgres, opened("pgxlock")},
		"pqlock":       {dbtest.Postgres, opened("pqlock")},
		"mysqllock":    {dbtest.MySQL, opened("mysqllock")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := up(t, c.database)
			dsn, end := endable(t, db)
			registry, pool := c.make(t, db, dsn)
			r := registry.Repository()
			var leases []*sqllock.Lease
			for i := range 2 * closing {
				leases = append(leases, check.Value(registry.Lock(t.Context(), fmt.Sprint(i)))(t))
			}
			calls := []struct {
				name string
				call func(n int) error
			}{
				{"Unlock", func(n int) error { return leases[n].Unlock(t.Context()) }},
				{"TryLock", func(n int) error { return check.ErrorOf(registry.TryLock(t.Context(), fmt.Sprint(n))) }},
				{"Renew", func(n int) error { return leases[closing+n].Renew(t.Context()) }},
				{"List", func(int) error { return check.ErrorOf(r.List(t.Context())) }},
				{"DeleteExpired", func(int) error { return check.ErrorOf(r.DeleteExpired(t.Context())) }},
			}
			if pool != nil {
				calls = append(calls, struct {
					name string
					call func(n int) error
				}{"ExecuteLockedTx", func(n int) error {
					return registry.ExecuteLockedTx(t.Context(), fmt.Sprint("tx", n), pool.DB, nil, func(context.Context, *sql.Tx) error { return nil })
				}})
			}
			for _, one := range calls {
				for n := range closing {
					if pool != nil {
						use(t, pool)
					} else {
						must(t, check.ErrorOf(r.List(t.Context())))
					}
					end()
					if err := one.call(n); err != nil {
						t.Errorf("%s, %d: %v", one.name, n, err)
					}
				}
			}
		})
	}
}

// A connection breaks before the answer has come, at any moment of any method of a repository, also while a new one
// is made. The method sends its statements again, whatever the driver, and nothing fails.
func TestOutage_AnAnswerIsLost(t *testing.T) {
	t.Parallel()
	type scene struct {
		t *testing.T
		r *sqllock.Repository
	}
	acquired := func(s scene, key string) (holder string) {
		s.t.Helper()
		holder = s.r.NewHolder()
		if !check.Value(s.r.Acquire(s.t.Context(), key, holder, never))(s.t).Acquired {
			s.t.Fatal("not acquired")
		}
		return holder
	}
	done := func(done bool, err error) error {
		if err == nil && !done {
			return errors.New("it was not done")
		}
		return err
	}
	methods := map[string]func(s scene, key, holder string) error{
		"Acquire": func(s scene, key, _ string) error {
			got, err := s.r.Acquire(s.t.Context(), key+"'", s.r.NewHolder(), never)
			return done(got.Acquired, err)
		},
		"Renew":         func(s scene, key, holder string) error { return done(s.r.Renew(s.t.Context(), key, holder, never)) },
		"Delete":        func(s scene, key, holder string) error { return done(s.r.Delete(s.t.Context(), key, holder)) },
		"IsAcquired":    func(s scene, key, holder string) error { return done(s.r.IsAcquired(s.t.Context(), key, holder)) },
		"Peek":          func(s scene, key, _ string) error { _, ok, err := s.r.Peek(s.t.Context(), key); return done(ok, err) },
		"PeekAll":       func(s scene, key, _ string) error { return check.ErrorOf(s.r.PeekAll(s.t.Context(), key, "other")) },
		"List":          func(s scene, _, _ string) error { return check.ErrorOf(s.r.List(s.t.Context())) },
		"ListFirst":     func(s scene, _, _ string) error { return check.ErrorOf(s.r.ListFirst(s.t.Context(), 3)) },
		"Count":         func(s scene, _, _ string) error { return check.ErrorOf(s.r.Count(s.t.Context())) },
		"DeleteExpired": func(s scene, _, _ string) error { return check.ErrorOf(s.r.DeleteExpired(s.t.Context())) },
		"ReleaseAll":    func(s scene, _, _ string) error { return s.r.ReleaseAll(s.t.Context()) },
		"DeleteRow": func(s scene, key, holder string) error {
			lockKey := check.Value(s.r.LockKey(key))(s.t)
			return done(s.r.DeleteRow(s.t.Context(), sqllock.Row{Region: s.r.Region(), LockKey: lockKey, Holder: holder}))
		},
	}
	lose := func(t *testing.T, proxy *wire.Proxy, r *sqllock.Repository) {
		t.Helper()
		for name, method := range methods {
			s := scene{t, r}
			for n := 1; ; n++ {
				key := fmt.Sprint(name, n)
				holder := acquired(s, key)
				proxy.Lose(n)
				if err := method(s, key, holder); err != nil {
					t.Errorf("%s, the answer of its round trip %d is lost: %v", name, n, err)
				}
				if !proxy.Lose(0) {
					break
				}
			}
		}
	}
	for name, c := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		driver   string
		opener   string
		messages bool
	}{
		"pgx":                     {database: dbtest.Postgres, driver: "pgx"},
		"lib/pq":                  {database: dbtest.Postgres, driver: "postgres"},
		"MariaDB":                 {database: dbtest.MySQL, driver: "mysql"},
		"MariaDB, messages":       {database: dbtest.MySQL, driver: "mysql", messages: true},
		"Oracle MySQL":            {database: dbtest.OracleMySQL, driver: "mysql"},
		"Oracle MySQL, messages":  {database: dbtest.OracleMySQL, driver: "mysql", messages: true},
		"pgxlock":                 {database: dbtest.Postgres, opener: "pgxlock"},
		"pqlock":                  {database: dbtest.Postgres, opener: "pqlock"},
		"mysqllock":               {database: dbtest.MySQL, opener: "mysqllock"},
		"mysqllock, Oracle MySQL": {database: dbtest.OracleMySQL, opener: "mysqllock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := up(t, c.database)
			proxy, dsn := wire.Through(t, db.DSN)
			if c.opener != "" {
				lose(t, proxy, byName(t, c.opener).opened(t, dsn, quiet).Repository())
				return
			}
			o := &sqllock.RepositoryOptions{MultiStatements: c.messages}
			if c.messages {
				dsn += "&multiStatements=true&interpolateParams=true"
			}
			pool := limited(db.OpenDSN(t, c.driver, dsn), 1)
			lose(t, proxy, check.Value(sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, o))(t))
		})
	}
}

func registryOver(t *testing.T, db *dbtest.DB, pool *sqlx.DB, o *sqllock.RepositoryOptions) (*sqllock.Registry, *sqlx.DB) {
	t.Helper()
	r := check.Value(sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, o))(t)
	return newRegistry(t, r, &sqllock.RegistryOptions{TTL: never, NoRenew: true}), pool
}

// use uses all connections of a pool, so that none of them has been idle.
func use(t *testing.T, pool *sqlx.DB) {
	t.Helper()
	conns := make([]*sqlx.Conn, closing)
	for i := range conns {
		for conns[i] == nil || conns[i].PingContext(t.Context()) != nil { // the server has closed it before
			var err error
			conns[i], err = pool.Connx(t.Context())
			must(t, err)
			defer conns[i].Close()
		}
	}
}

// endable returns a DSN, and a function that ends all sessions over it.
func endable(t *testing.T, db *dbtest.DB) (dsn string, end func()) {
	t.Helper()
	dsn, of, kill := db.DSN, "id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()", "KILL %d"
	admin := limited(db.Open(t), 1)
	if db.Name == "postgres" {
		name := rand.Text()
		dsn = db.With(t, map[string]string{"application_name": name})
		of = "pid FROM pg_stat_activity WHERE application_name = '" + name + "'"
		kill = "SELECT pg_terminate_backend(%d)"
	} else {
		must(t, db.DB.Close()) // another pool over the same database
	}
	return dsn, func() {
		var ids []int64
		for {
			must(t, admin.SelectContext(t.Context(), &ids, "SELECT "+of))
			if len(ids) == 0 {
				return
			}
			for _, id := range ids {
				_, _ = admin.ExecContext(t.Context(), fmt.Sprintf(kill, id)) // it may be gone
			}
			ids = nil
			time.Sleep(time.Millisecond)
		}
	}
}

// postgresPair starts a primary and its synchronous replica. Without PostgreSQL the test is skipped, but not in CI.
func postgresPair(t *testing.T) (primary, replica *server.Server) {
	t.Helper()
	scratch := check.Value(server.NewScratch())(t)
	t.Cleanup(func() { must(t, scratch.Remove()) })
	primary, replica, err := server.StartPostgresPair(t.Context(), scratch.Dir)
	if errors.Is(err, server.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(primary.Kill(), replica.Kill())) })
	return primary, replica
}

// A server that goes down and comes back has forgotten nothing. (It is not killed: the servers of these tests do not
// wait for the disk, for speed.) It takes as long as the server takes to stop and start.
func TestOutage_LeaseOutlivesARestart(t *testing.T) {
	t.Parallel()
	for name, w := range watchedServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := w.run(t)
			repository := check.Value(sqllock.NewRepository(unhurried(t), db.DB, w.dialect, nil))(t)
			registry := newRegistry(t, repository, &sqllock.RegistryOptions{TTL: never, NoRenew: true})
			lease := check.Value(obtain(t, registry, "k").Lock(t.Context()))(t)
			must(t, s.Stop())
			if err := lease.Renew(t.Context()); !errors.Is(err, sqllock.ErrDatabase) || errors.Is(err, sqllock.ErrLockLost) {
				t.Fatal(err)
			}
			must(t, s.Restart(t.Context()))
			must(t, lease.Renew(t.Context()))
			rival := check.Value(sqllock.NewRepository(unhurried(t), db.DB, w.dialect, nil))(t)
			is(t, check.ErrorOf(obtain(t, newRegistry(t, rival, &sqllock.RegistryOptions{NoRenew: true}), "k").TryLock(t.Context())), sqllock.ErrNotAcquired)
			must(t, lease.Unlock(t.Context()))
			must(t, check.Value(obtain(t, registry, "other").Lock(t.Context()))(t).Unlock(t.Context()))
		})
	}
}

// onWires are the openers of databases that are reached over a network.
func onWires(t *testing.T) []opener {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(openers), func(o opener) bool { return o.name == "sqlitelock" })
}

// While the server is down, no caller acquires. Waiting callers go on when it is back, and the fencing tokens rise.
func TestOutage_OfTheServer(t *testing.T) {
	t.Parallel()
	for _, o := range onWires(t) {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			db := up(t, o.database)
			proxy, dsn := wire.Through(t, db.DSN)
			registry := o.opened(t, dsn, openOptions{registry: sqllock.RegistryOptions{TTL: never, WaitThroughOutages: true}})
			before := check.Value(registry.Lock(t.Context(), "before"))(t)
			target := proxy.LeadTo("")
			is(t, check.ErrorOf(registry.TryLock(t.Context(), "k")), sqllock.ErrDatabase)
			got := make(chan *sqllock.Lease, 1)
			refused := proxy.Refused()
			go func() {
				lease, err := registry.Lock(context.WithoutCancel(t.Context()), "k")
				is(t, err, nil)
				got <- lease
			}()
			awaitThat(t, "the waiter has met the outage", func() bool { return proxy.Refused() > refused })
			proxy.LeadTo(target)
			lease := <-got
			if lease.Token() <= before.Token() {
				t.Errorf("token %d after %d", lease.Token(), before.Token())
			}
			must(t, lease.Unlock(t.Context()))
			must(t, before.Unlock(t.Context()))
		})
	}
}

// openImpatientPq is openPq, but a connection counts as dead after 2 s without an answer, and not after half a
// minute.
func openImpatientPq(ctx context.Context, dsn string, o openOptions) (*sqllock.Registry, error) {
	parse := func(dsn string) (session.Target, error) {
		target, err := pqdriver.Parse(dsn)
		connector := target.Connector
		target.Connector = func(source string, s session.Settings) (driver.Connector, error) {
			if s.Patience != 0 {
				s.Patience = 2 * time.Second
			}
			return connector(source, s)
		}
		return target, err
	}
	return session.Open(ctx, dsn, parse, session.Options{Repository: o.repository, Registry: o.registry})
}

// impatient are the openers on servers, with that of lib/pq being impatient.
func impatient(t *testing.T) []opener {
	t.Helper()
	all := onServers(t)
	for i := range all {
		if all[i].name == "pqlock" {
			all[i].open = openImpatientPq
		}
	}
	return all
}

// openAll has a registry open all connections of its pools, through a proxy: as long as the table is locked,
// acquisitions and reads need one more each.
func openAll(t *testing.T, db *dbtest.DB, proxy *wire.Proxy, r *sqllock.Registry) {
	t.Helper()
	const all = 4
	conn := check.Value(db.DB.Conn(t.Context()))(t)
	defer conn.Close()
	lock, unlock := "BEGIN; LOCK TABLE INT_LOCK IN ACCESS EXCLUSIVE MODE", "ROLLBACK"
	if sqltext.Of(db.Dialect).Name == sqltext.MySQL().Name {
		lock, unlock = "LOCK TABLES INT_LOCK WRITE", "UNLOCK TABLES"
	}
	must(t, check.ErrorOf(conn.ExecContext(t.Context(), lock)))
	var opened atomic.Bool
	var working sync.WaitGroup
	for i := range all {
		working.Go(func() {
			for !opened.Load() { // lib/pq is impatient
				if lease, err := r.TryLock(t.Context(), fmt.Sprint("opens ", i)); err == nil {
					_ = lease.Unlock(t.Context())
				}
			}
		})
		working.Go(func() {
			for !opened.Load() {
				_, _ = r.Repository().List(t.Context())
			}
		})
	}
	awaitThat(t, "all connections are open", func() bool { return proxy.Links() == all })
	opened.Store(true)
	must(t, check.ErrorOf(conn.ExecContext(t.Context(), unlock)))
	working.Wait()
	awaitThat(t, "it locks", func() bool { return locks(t, r) })
}

// awaitThat waits for what takes some seconds at most. The limit is for what would never happen.
func awaitThat(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for began := time.Now(); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 15*time.Minute { // it only ends a test that hangs
			t.Fatalf("it never came about that %s", what)
		}
	}
}

// locks reports whether a registry acquires and releases.
func locks(t *testing.T, r *sqllock.Registry) bool {
	t.Helper()
	lease, err := r.TryLock(t.Context(), "k")
	if err == nil {
		err = lease.Unlock(t.Context())
	}
	if err != nil && !errors.Is(err, sqllock.ErrDatabase) && !errors.Is(err, sqllock.ErrNotAcquired) && !errors.Is(err, sqllock.ErrLockLost) {
		t.Error(err)
	}
	return err == nil
}

// All connections of the pools have died silently. The registry notices that, and opens others. A batch has 5 s for
// its answer, and there is one on each connection in turn: that takes 15 to 30 s.
func TestOutage_ConnectionsThatDieSilently(t *testing.T) {
	t.Parallel()
	for _, o := range impatient(t) {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			db := up(t, o.database)
			proxy, dsn := wire.Through(t, db.DSN)
			// real time: so long is an answer of a dead connection waited for; no lease has to last
			registry := o.opened(t, dsn, openOptions{hurried: true, registry: sqllock.RegistryOptions{TTL: sqllock.DefaultTTL, NoRenew: true}}) // as is waited for an answer
			openAll(t, db, proxy, registry)
			proxy.Freeze()
			awaitThat(t, "it locks again", func() bool { return locks(t, registry) })
		})
	}
}

// withHosts returns a DSN as keywords: lib/pq reads no ports of several hosts from a URL.
func withHosts(t *testing.T, dsn string, addresses ...string) string {
	t.Helper()
	u := check.Value(url.Parse(dsn))(t)
	var hosts, ports []string
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		must(t, err)
		hosts, ports = append(hosts, host), append(ports, port)
	}
	keywords := fmt.Sprintf("host=%s port=%s user=%s dbname=%s",
		strings.Join(hosts, ","), strings.Join(ports, ","), u.User.Username(), strings.TrimPrefix(u.Path, "/"))
	if password, ok := u.User.Password(); ok {
		keywords += " password='" + password + "'"
	}
	for name, values := range u.Query() {
		keywords += " " + name + "='" + values[0] + "'"
	}
	return keywords
}

// The first of two hosts does not answer any more. A registry goes to the second one, and so does Open. A batch
// has 5 s for its answer, and each new connection waits 2 s for the first host: 15 s.
func TestOutage_FirstOfTwoHostsIsSilent(t *testing.T) {
	t.Parallel()
	for _, o := range impatient(t) {
		if o.name == "mysqllock" {
			continue // its DSN has one host
		}
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			db := up(t, o.database)
			first, dsn := wire.Through(t, db.DSN)
			second, _ := wire.Through(t, db.DSN)
			hosts := withHosts(t, dsn, first.Addr, second.Addr)
			// real time: so long is an answer of a dead connection waited for; no lease has to last
			registry := o.opened(t, hosts, openOptions{hurried: true, registry: sqllock.RegistryOptions{TTL: sqllock.DefaultTTL, NoRenew: true}}) // as is waited for an answer
			awaitThat(t, "it locks", func() bool { return locks(t, registry) })
			first.Silence()
			awaitThat(t, "the registry locks over the second host", func() bool { return locks(t, registry) })
			awaitThat(t, "Open succeeds over the second host", func() bool {
				r, err := o.open(t.Context(), hosts, openOptions{})
				if err != nil {
					return false
				}
				must(t, r.Close(context.Background()))
				return true
			})
		})
	}
}

// The synchronous standby does not answer, and the wait of a COMMIT is cancelled: PostgreSQL answers with success and
// a warning. A failover would lose the row, and give the lock and its token out again. So it is not acquired, nor
// renewed. It takes a server of its own.
func TestOutage_NotReplicatedIsNotAcquired(t *testing.T) {
	t.Parallel()
	s, admin := watchedServers["postgres"].run(t)
	dsn := s.DSN() + "&synchronous_commit=on"
	leases := make(map[*sqllock.Registry]*sqllock.Lease)
	for _, o := range []opener{byName(t, "pgxlock"), byName(t, "pqlock")} {
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.ReadCommitted, sqllock.Autocommit} {
			r := o.opened(t, dsn, openOptions{repository: sqllock.RepositoryOptions{Isolation: isolation}, registry: sqllock.RegistryOptions{TTL: never}})
			var err error
			leases[r], err = r.Lock(t.Context(), o.name+isolation.String())
			must(t, err)
		}
	}
	admin.SetMaxOpenConns(1) // whose commits do not wait: the server has synchronous_commit=off
	for _, text := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'away'", "SELECT pg_reload_conf()"} {
		must(t, check.ErrorOf(admin.ExecContext(t.Context(), text)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		for ctx.Err() == nil {
			_, _ = admin.ExecContext(ctx, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
			time.Sleep(time.Millisecond)
		}
	}()
	// Commits wait as soon as the checkpointer has read its settings, which no session shows.
	for r := slices.Collect(maps.Keys(leases))[0]; ; {
		probe, err := r.TryLock(t.Context(), "probe")
		if errors.Is(err, sqllock.ErrDatabase) {
			break
		}
		must(t, err)
		_ = probe.Unlock(t.Context()) // it may be the first that waits
	}
	for r, lease := range leases {
		name := lease.Key()
		if _, err := r.TryLock(t.Context(), "free "+name); !errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("%s: TryLock: %v", name, err)
		}
		if joint, err := r.ObtainAll("a"+name, "b"+name); err != nil {
			t.Error(err)
		} else if _, err := joint.TryLock(t.Context()); !errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("%s: TryLock of two keys: %v", name, err)
		}
		if err := lease.Renew(t.Context()); !errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("%s: Renew: %v", name, err)
		}
		rows := check.Value(r.Repository().List(t.Context()))(t)
		if len(rows) != len(leases) {
			t.Errorf("%s: %d rows, want %d", name, len(rows), len(leases))
		}
	}
	cancel()
	<-cancelled
	for _, text := range []string{"ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"} {
		must(t, check.ErrorOf(admin.ExecContext(t.Context(), text)))
	}
}
