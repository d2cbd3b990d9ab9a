package notify_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqllock/sqllock/notify"
)

var errGate = errors.New("the gate is closed")

// A gate is a network that can be closed to new connections, or swallow what is sent over
// those that there are.
type gate struct {
	mu     sync.Mutex
	closed bool
	conns  []*gatedConn
	writes atomic.Int64
}

// newGatedWorld has a listener behind a gate, which asks soon whether the server is there,
// and sends what becomes of its connection.
func newGatedWorld(t *testing.T) (*world, *gate, chan error) {
	t.Helper()
	w, g, told := newSilentWorld(t), new(gate), make(chan error, 1000)
	listener, err := notify.ListenThrough(t.Context(), w.dsn, &notify.Options{
		OnConnection: func(err error) { told <- err },
	}, g.dial)
	must(t, err)
	w.use(listener)
	return w, g, told
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

// silence makes all connections that there are swallow everything.
func (g *gate) silence() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		c.silent.Store(true)
	}
}

// written counts what was sent to the server.
func (g *gate) written() int64 { return g.writes.Load() }

type gatedConn struct {
	net.Conn
	gate   *gate
	silent atomic.Bool
}

func (c *gatedConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.silent.Load() {
			return n, err
		}
	}
}

func (c *gatedConn) Write(p []byte) (int, error) {
	c.gate.writes.Add(1)
	if c.silent.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}
