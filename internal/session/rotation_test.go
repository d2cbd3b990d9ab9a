package session_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/test/check"
)

// A limited server gives out connections until others have used up its limit.
type limited struct {
	full         atomic.Bool
	open, opened atomic.Int64
	last         *healthy
}

var errFull = errors.New("too many connections")

func (l *limited) Connect(context.Context) (driver.Conn, error) {
	if l.full.Load() {
		return nil, errFull
	}
	l.open.Add(1)
	l.opened.Add(1)
	l.last = &healthy{server: l}
	return l.last, nil
}

func (*limited) Driver() driver.Driver { return nil }

type healthy struct {
	server *limited
	gone   bool
}

func (c *healthy) answer() error {
	if c.gone {
		return driver.ErrBadConn
	}
	return nil
}

func (*healthy) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (*healthy) PrepareContext(context.Context, string) (driver.Stmt, error) {
	return nil, driver.ErrSkip
}
func (*healthy) Begin() (driver.Tx, error) { return nil, driver.ErrSkip }
func (*healthy) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return nil, driver.ErrSkip
}
func (*healthy) CheckNamedValue(*driver.NamedValue) error { return nil }
func (c *healthy) Ping(context.Context) error             { return c.answer() }
func (c *healthy) ResetSession(context.Context) error     { return c.answer() }

func (c *healthy) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), c.answer()
}

func (*healthy) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, driver.ErrSkip
}

func (c *healthy) Close() error {
	c.server.open.Add(-1)
	return nil
}

// Old connections are replaced, but none is closed before its successor is connected.
func TestRotation(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"often used": time.Second, "seldom used": 45 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := new(limited)
				target := session.Target{Dialect: dialect.Postgres(), Connector: func(string, session.Settings) (driver.Connector, error) { return server, nil }}
				pools := check.Value(target.Connect(t.Context(), session.Need{Connections: 4}))(t)
				use := func(minutes int) {
					t.Helper()
					for range time.Duration(minutes) * time.Minute / pause {
						must(t, check.ErrorOf(pools.DB.ExecContext(t.Context(), "renew")))
						time.Sleep(pause)
					}
				}
				server.full.Store(true)
				use(60)
				check.Equal(t, "connections were opened on a full server", server.opened.Load(), 1)
				server.full.Store(false)
				use(60)
				if opened := server.opened.Load(); opened < 6 || opened > 14 {
					t.Errorf("%d connections were opened within an hour", opened)
				}
				must(t, pools.Close())
				check.Equal(t, "connections are open in the end", server.open.Load(), 0)
			})
		})
	}
}

// TestRotationOfSpareConnections has more connections than are needed: the pool gives out the one that it got back last, so
// that the others wait for ever.
func TestRotationOfSpareConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := new(limited)
		target := session.Target{Dialect: dialect.Postgres(), Connector: func(string, session.Settings) (driver.Connector, error) { return server, nil }}
		pools := check.Value(target.Connect(t.Context(), session.Need{Connections: 4}))(t)
		a, b := check.Value(pools.DB.Conn(t.Context()))(t), check.Value(pools.DB.Conn(t.Context()))(t)
		must(t, errors.Join(a.Close(), b.Close()))
		for range 3600 {
			must(t, check.ErrorOf(pools.DB.ExecContext(t.Context(), "renew")))
			time.Sleep(time.Second)
		}
		if opened := server.opened.Load(); opened < 10 || opened > 14 {
			t.Errorf("%d connections were opened within an hour", opened)
		}
		check.Equal(t, "connections are open", server.open.Load(), 2)
		must(t, pools.Close())
		check.Equal(t, "connections are open in the end", server.open.Load(), 0)
	})
}

// TestRotationToASuccessorThatIsGone has the server close a successor that waits for long.
func TestRotationToASuccessorThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := new(limited)
		target := session.Target{Dialect: dialect.Postgres(), Connector: func(string, session.Settings) (driver.Connector, error) { return server, nil }}
		pools := check.Value(target.Connect(t.Context(), session.Need{Connections: 4}))(t)
		use := func() { must(t, check.ErrorOf(pools.DB.ExecContext(t.Context(), "renew"))) }
		time.Sleep(time.Hour)
		use() // begins to connect a successor
		time.Sleep(time.Hour)
		synctest.Wait()
		server.last.gone = true
		a := check.Value(pools.DB.Conn(t.Context()))(t)
		b := check.Value(pools.DB.Conn(t.Context()))(t) // the pool has no other connection
		check.Is(t, check.ErrorOf(b.ExecContext(t.Context(), "renew")), nil)
		must(t, errors.Join(a.Close(), b.Close(), pools.Close()))
		check.Equal(t, "connections are open in the end", server.open.Load(), 0)
	})
}

// As many connections stay as there were, if only one successor can be connected at a time.
func TestRotationOfSeveralConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := new(limited)
		target := session.Target{Dialect: dialect.Postgres(), Connector: func(string, session.Settings) (driver.Connector, error) { return server, nil }}
		pools := check.Value(target.Connect(t.Context(), session.Need{Connections: 4}))(t)
		for minute := range 30 {
			server.full.Store(minute > 0 && minute != 10) // the limit leaves room in one minute, for a moment
			for range 60 {
				var used []interface{ Close() error }
				for range 4 {
					used = append(used, check.Value(pools.DB.Conn(t.Context()))(t))
				}
				for _, conn := range used {
					must(t, conn.Close())
				}
				time.Sleep(time.Second)
				server.full.Store(minute > 0)
			}
		}
		must(t, pools.Close())
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	check.Must(t, err)
}
