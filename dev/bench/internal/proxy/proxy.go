// Package proxy contains two TCP proxies for measurements: one counts round trips and statements,
// and one delays the network.
package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// A Count is what went through a [Counter].
type Count struct {
	// Connections were opened.
	Connections int64
	// RoundTrips counts how often the client has sent something and then received a
	// response.
	RoundTrips int64
	// Statements were run, where the protocol is known.
	Statements int64
}

// Minus returns what has been added since before.
func (c Count) Minus(before Count) Count {
	return Count{c.Connections - before.Connections, c.RoundTrips - before.RoundTrips, c.Statements - before.Statements}
}

// A Counter is a TCP proxy that counts.
type Counter struct {
	// Address is where it listens.
	Address string

	target   string
	protocol Protocol
	listener net.Listener
	pumps    sync.WaitGroup
	ctx      context.Context // ends the pumps
	stop     context.CancelFunc

	connections, roundTrips, statements atomic.Int64
}

// NewCounter starts a proxy in front of the target.
func NewCounter(ctx context.Context, target string, protocol Protocol) (*Counter, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &Counter{Address: listener.Addr().String(), target: target, protocol: protocol, listener: listener}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.pumps.Go(c.accept)
	return c, nil
}

// Count returns what was counted until now.
func (c *Counter) Count() Count {
	return Count{c.connections.Load(), c.roundTrips.Load(), c.statements.Load()}
}

// Close ends the proxy and its connections.
func (c *Counter) Close() error {
	c.stop()
	err := c.listener.Close()
	c.pumps.Wait()
	return err
}

func (c *Counter) accept() {
	for {
		client, err := c.listener.Accept()
		if err != nil {
			return // it was closed
		}
		c.connections.Add(1)
		c.pumps.Go(func() { c.serve(client) })
	}
}

// serve carries one connection until either side leaves.
func (c *Counter) serve(client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(c.ctx, "tcp", c.target)
	if err != nil {
		_ = client.Close()
		return
	}
	end := func() { _ = errors.Join(client.Close(), server.Close()) }
	defer context.AfterFunc(c.ctx, end)()
	var asking atomic.Bool // the client has sent something since the last answer
	statements := c.protocol.statements(&c.statements)
	c.pumps.Go(func() {
		defer end()
		pump(server, client, func(sent []byte) {
			asking.Store(true)
			statements(sent)
		})
	})
	defer end()
	pump(client, server, func([]byte) {
		if asking.Swap(false) {
			c.roundTrips.Add(1)
		}
	})
}

// pump copies, and shows what it copies before that arrives.
func pump(to, from net.Conn, see func([]byte)) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			see(buffer[:n])
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
