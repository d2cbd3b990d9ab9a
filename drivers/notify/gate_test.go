package notify_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqllock/sqllock/drivers/notify"
)

var errGate = errors.New("the gate is closed")

// A gate is a network that can refuse new connections, or drop all data of the existing
// ones.
type gate struct {
	mu     sync.Mutex
	closed bool
	conns  []*gatedConn
	writes atomic.Int64
}

// newGatedFixture returns a fixture whose listener connects through a gate and has short
// timeouts. The channel receives what OnConnection is called with.
func newGatedFixture(t *testing.T) (*fixture, *gate, chan error) {
	t.Helper()
	f, g, connection := newFixtureWithoutListener(t), new(gate), make(chan error, 1000)
	listener, err := notify.ListenThrough(t.Context(), f.dsn, &notify.Options{
		OnConnection: func(err error) { connection <- err },
	}, g.dial)
	must(t, err)
	f.setListener(listener)
	return f, g, connection
}

func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errGate
	}
	inner, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &gatedConn{Conn: inner, gate: g}
	g.conns = append(g.conns, c)
	return c, nil
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

// blackhole drops all data of the existing connections from now on.
func (g *gate) blackhole() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		c.blackholed.Store(true)
	}
}

// written returns the number of writes to the server.
func (g *gate) written() int64 { return g.writes.Load() }

type gatedConn struct {
	net.Conn
	gate       *gate
	blackholed atomic.Bool
}

func (c *gatedConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.blackholed.Load() {
			return n, err
		}
	}
}

func (c *gatedConn) Write(p []byte) (int, error) {
	c.gate.writes.Add(1)
	if c.blackholed.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}
