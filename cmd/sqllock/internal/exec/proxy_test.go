//go:build unix

package exec

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// A proxy forwards connections to PostgreSQL. It can stop forwarding and keep the connections
// open.
type proxy struct {
	dsn        string              // through the proxy
	repository *sqllock.Repository // not through the proxy
	target     string
	silent     atomic.Bool // new connections are not forwarded either

	mu    sync.Mutex
	links []*link
}

// A link is one connection, of two halves.
type link struct {
	client, server net.Conn
	frozen         atomic.Bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	db := dbtest.Postgres(t)
	p := &proxy{repository: migrated(t, db)}
	dsn, err := url.Parse(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.target, dsn.Host = dsn.Host, listener.Addr().String()
	p.dsn = dsn.String()
	var working sync.WaitGroup
	working.Go(func() { p.accept(listener, &working) })
	t.Cleanup(func() {
		listener.Close()
		p.each(func(l *link) {
			l.client.Close()
			l.server.Close()
		})
		working.Wait()
	})
	return p
}

func (p *proxy) accept(listener net.Listener, working *sync.WaitGroup) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target) //nolint:noctx // the listener ends the proxy
		if err != nil {
			client.Close()
			continue
		}
		l := &link{client: client, server: server}
		l.frozen.Store(p.silent.Load())
		p.mu.Lock()
		p.links = append(p.links, l)
		p.mu.Unlock()
		working.Go(func() { l.pass(server, client) })
		working.Go(func() { l.pass(client, server) })
	}
}

// pass forwards data in one direction. If the link is frozen, it discards the data.
func (l *link) pass(to, from net.Conn) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			to.Close()
			return
		}
		if !l.frozen.Load() {
			_, _ = to.Write(buffer[:n]) // the other half will notice
		}
	}
}

// freeze stops forwarding on the current connections.
func (p *proxy) freeze() { p.each(func(l *link) { l.frozen.Store(true) }) }

// swallow stops forwarding on all connections, new ones too.
func (p *proxy) swallow() {
	p.silent.Store(true)
	p.freeze()
}

func (p *proxy) each(fn func(*link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		fn(l)
	}
}
