// Package wire has a proxy between a client and a server of the tests. It counts round trips on
// the wire, delays answers, breaks connections, has them die silently, and leads new ones to another server.
package wire

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
)

// A Proxy forwards TCP connections to a server.
type Proxy struct {
	// Addr is where clients connect: host:port.
	Addr string

	mu     sync.Mutex
	target string // "" if the server is away
	silent bool   // new connections get no answer
	links  map[*link]struct{}
	trips  int
	lost   int // the round trip from now on whose answer is lost, or 0
	delay  time.Duration

	refused int // connections while the server was away

	opened   func() (sent func([]byte)) // may be nil
	listener net.Listener
	working  sync.WaitGroup
}

// A link is one connection through the proxy.
type link struct {
	client, server net.Conn
	sent           func([]byte) // sees what the client sends; may be nil
	asking         bool         // the client has sent last
	lost           bool         // so is the answer
	frozen         bool         // nothing is forwarded any more
}

// New returns a proxy to the server at target, host:port. It is closed when the test ends.
func New(tb testing.TB, target string) *Proxy {
	tb.Helper()
	listener := check.Value(new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0"))(tb)
	p := &Proxy{Addr: listener.Addr().String(), target: target, links: make(map[*link]struct{}), listener: listener}
	p.working.Go(p.accept)
	tb.Cleanup(p.Close)
	return p
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	_ = p.listener.Close() // accept ends with it
	p.LeadTo("")
	p.working.Wait()
}

// Watch calls opened for each new connection. What that returns is shown what the client sends, in
// pieces of any size.
func (p *Proxy) Watch(opened func() (sent func([]byte))) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened = opened
}

// Trips returns the number of round trips since the last call: how often a client has sent
// something after the server has, on each connection.
func (p *Proxy) Trips() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	trips := p.trips
	p.trips = 0
	return trips
}

// Lose has the answer of the n-th round trip from now on lost: what the client sends is forwarded, and the
// connection breaks. It reports whether that of the last call was.
func (p *Proxy) Lose(n int) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, p.lost = p.lost == 0, n
	return last
}

// Delay has what the server sends arrive so much later from now on, as over a longer way.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// LeadTo breaks all connections, and leads new ones to another server, or to none if target
// is "". It returns the target before.
func (p *Proxy) LeadTo(target string) (before string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, p.target = p.target, target
	for l := range p.links {
		l.close()
	}
	return before
}

// Freeze has all connections die silently: nothing is forwarded, and neither side is told, even if the
// other one closes the connection. New ones work.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.frozen = true
	}
}

// Silence is Freeze, also for new connections.
func (p *Proxy) Silence() {
	p.Freeze()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
}

// Links returns the number of connections that are not frozen.
func (p *Proxy) Links() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if !l.frozen {
			n++
		}
	}
	return n
}

// Refused returns how many connections were refused because the server was away.
func (p *Proxy) Refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

func (l *link) close() {
	_, _ = l.client.Close(), l.server.Close() // the copying goroutines notice
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		l := p.connect(client)
		if l == nil {
			_ = client.Close()
			continue
		}
		p.working.Go(func() { p.pass(l, l.server, l.client, true) })
		p.working.Go(func() { p.pass(l, l.client, l.server, false) })
	}
}

// connect returns the link of a new client, or nil if the server is away.
func (p *Proxy) connect(client net.Conn) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target == "" {
		p.refused++
		return nil
	}
	server, err := net.Dial("tcp", p.target) //nolint:noctx // to this machine
	if err != nil {
		return nil
	}
	l := &link{client: client, server: server, frozen: p.silent}
	if p.opened != nil {
		l.sent = p.opened()
	}
	p.links[l] = struct{}{}
	return l
}

// pass forwards data in one direction until the connection breaks.
func (p *Proxy) pass(l *link, to, from net.Conn, asking bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			break
		}
		forwards, breaks := p.note(l, asking)
		if !forwards {
			return // the connection stays open
		}
		if !asking {
			time.Sleep(p.later())
		}
		if asking && l.sent != nil {
			l.sent(buffer[:n])
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			break
		}
		if breaks {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.frozen {
		return // neither side is told that the other one has closed the connection
	}
	l.close()
	delete(p.links, l)
}

// later returns how much later an answer is forwarded.
func (p *Proxy) later() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// note counts a round trip when the client begins to send. It is called before the data is
// forwarded, so that an answer comes after what it answers. It reports whether to forward it, and whether the
// connection breaks then.
func (p *Proxy) note(l *link, asking bool) (forwards, breaks bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.frozen {
		return false, false
	}
	if asking && !l.asking {
		p.trips++
		if p.lost > 0 {
			p.lost--
			breaks = p.lost == 0
		}
	}
	l.asking, l.lost = asking, l.lost || breaks
	return asking || !l.lost, breaks
}
