package sqllock_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/pqdriver"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/wire"
	"github.com/sqllock/sqllock/migrations"
)

// openImpatientPq is openPq, but a connection counts as dead after 2 s without an answer, and not
// after half a minute.
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

// openAll has a registry open all connections of its pools, through a proxy: as long as the table is
// locked, acquisitions and reads need one more each.
func openAll(t *testing.T, db *dbtest.DB, proxy *wire.Proxy, r *sqllock.Registry) {
	t.Helper()
	const all = 4
	conn, err := db.DB.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	lock, unlock := "BEGIN; LOCK TABLE INT_LOCK IN ACCESS EXCLUSIVE MODE", "ROLLBACK"
	if db.Dialect.Name == dialect.MySQL().Name {
		lock, unlock = "LOCK TABLES INT_LOCK WRITE", "UNLOCK TABLES"
	}
	_, err = conn.ExecContext(t.Context(), lock)
	must(t, err)
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
	_, err = conn.ExecContext(t.Context(), unlock)
	must(t, err)
	working.Wait()
	awaitThat(t, "it locks", func() bool { return locks(t, r) })
}

// awaitThat waits for what takes some seconds at most. The limit is for what would never happen.
func awaitThat(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for began := time.Now(); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 3*time.Minute {
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

// All connections of the pools have died silently. The registry notices that, and opens others. A
// batch has 5 s for its answer, and there is one on each connection in turn: that takes 15 to 30 s.
func TestConnectionsThatDieSilently(t *testing.T) {
	t.Parallel()
	for _, o := range impatient(t) {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			db := o.database(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			proxy, dsn := through(t, db)
			registry := o.opened(t, dsn, openOptions{})
			openAll(t, db, proxy, registry)
			proxy.Freeze()
			awaitThat(t, "it locks again", func() bool { return locks(t, registry) })
		})
	}
}

// withHosts returns a DSN as keywords: lib/pq reads no ports of several hosts from a URL.
func withHosts(t *testing.T, dsn string, addresses ...string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	must(t, err)
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

// The first of two hosts does not answer any more. A registry goes to the second one, and so does
// Open. A batch has 5 s for its answer, and each new connection waits 2 s for the first host: 15 s.
func TestTheFirstOfTwoHostsIsSilent(t *testing.T) {
	t.Parallel()
	for _, o := range impatient(t) {
		if o.name == "mysqllock" {
			continue // its DSN has one host
		}
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			db := o.database(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			first, dsn := through(t, db)
			second, _ := through(t, db)
			hosts := withHosts(t, dsn, first.Addr, second.Addr)
			registry := o.opened(t, hosts, openOptions{})
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
