package pqdriver

import (
	"context"
	"net"
	"time"
)

// A dialer makes connections that count as dead if an answer takes longer than patience. lib/pq
// goes on reading when a context ends: a server that vanished would keep its place in the
// pool until TCP gives up, after a quarter of an hour or never.
type dialer struct {
	patience time.Duration
}

// DialContext implements pq.DialerContext.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: c, patience: d.patience}, nil
}

// Dial implements pq.Dialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout implements pq.Dialer.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// A connection is read from only while its user waits for an answer. One goroutine at a time uses
// it, so that dated needs no lock.
type connection struct {
	net.Conn

	patience time.Duration
	dated    bool // the user has set a deadline of its own
}

// SetDeadline implements net.Conn.
func (c *connection) SetDeadline(t time.Time) error {
	c.dated = !t.IsZero()
	return c.Conn.SetDeadline(t)
}

// Read implements net.Conn.
func (c *connection) Read(b []byte) (int, error) {
	if !c.dated {
		if err := c.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Read(b)
}
