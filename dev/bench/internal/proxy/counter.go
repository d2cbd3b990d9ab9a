// Package proxy contains two TCP proxies for measurements: one counts round trips and statements,
// and one delays the network.
package proxy

import (
	"context"
	"sync/atomic"

	"github.com/sqllock/sqllock/internal/test/wire"
)

// A Count is what went through a [Counter].
type Count struct {
	// Connections were opened.
	Connections int64
	// RoundTrips counts how often the client has sent something after the server has.
	RoundTrips int64
	// Statements were run, where the protocol is known.
	Statements int64
}

// A Counter is a TCP proxy that counts.
type Counter struct {
	// Address is where it listens.
	Address string

	proxy                   *wire.Proxy
	connections, statements atomic.Int64
}

// NewCounter starts a proxy in front of the target.
func NewCounter(ctx context.Context, target string, protocol Protocol) (*Counter, error) {
	p, err := wire.Start(ctx, target)
	if err != nil {
		return nil, err
	}
	c := &Counter{Address: p.Addr, proxy: p}
	p.Watch(func() func([]byte) {
		c.connections.Add(1)
		return protocol.statements(&c.statements)
	})
	return c, nil
}

// Count returns all connections, and what else was counted since the last call.
func (c *Counter) Count() Count {
	return Count{c.connections.Load(), int64(c.proxy.Trips()), c.statements.Swap(0)}
}

// Close ends the proxy and its connections.
func (c *Counter) Close() { c.proxy.Close() }
