//go:build linux

package reliability

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/go-sql-driver/mysql"
	"github.com/rs/zerolog"
)

// A network is a connection to a server that can be made to drop all data.
type network struct {
	t     *testing.T
	dsn   string // through this network
	proxy *toxiproxy.Proxy
	hole  int64
	over  func()
}

// newNetwork returns a network to the base.
func newNetwork(t *testing.T, b *base) *network {
	t.Helper()
	n := &network{t: t, hole: holes.Add(1)}
	dug := make(chan struct{})
	dig.Store(n.hole, dug)
	from := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	n.proxy = toxiproxy.NewProxy(from, fmt.Sprint(n.hole), "127.0.0.1:0", address(t, b))
	must(t, n.proxy.Start())
	n.dsn = through(t, b, n.proxy.Listen)
	n.over = sync.OnceFunc(func() {
		n.proxy.Stop()
		close(dug)
	})
	t.Cleanup(n.over)
	return n
}

// fallSilent makes the network drop all data of existing and new connections. Neither side
// even learns that the other side has closed the connection.
func (n *network) fallSilent() {
	for _, direction := range []string{"upstream", "downstream"} {
		toxic := fmt.Sprintf(`{"type": "black_hole", "stream": %q, "attributes": {"hole": %d}}`, direction, n.hole)
		if _, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			n.t.Error(err)
		}
	}
}

// delayAnswers delays all data from the server by the given number of milliseconds.
func (n *network) delayAnswers(ms int) {
	toxic := fmt.Sprintf(`{"type": "latency", "stream": "downstream", "attributes": {"latency": %d}}`, ms)
	if _, err := n.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		n.t.Error(err)
	}
}

// breakDown closes all connections, on both sides.
func (n *network) breakDown() { n.over() }

// A blackHole drops all data. Toxiproxy's own toxic timeout is not enough: it reports to each
// side when the other one has closed its connection. Toxics are created from JSON: Hole is
// the number of the channel that ends it.
type blackHole struct {
	Hole int64 `json:"hole"`
}

var (
	holes atomic.Int64
	dig   sync.Map // of holes to channels
)

func (h *blackHole) Pipe(stub *toxics.ToxicStub) {
	dug, _ := dig.Load(h.Hole)
	input := stub.Input
	for {
		select {
		case <-stub.Interrupt:
			return
		case <-dug.(chan struct{}):
			stub.Close()
			if input != nil {
				for range input { // until the reading side has ended
				}
			}
			return
		case c := <-input:
			if c == nil {
				input = nil
			}
		}
	}
}

func init() { toxics.Register("black_hole", new(blackHole)) }

// address returns the address of the base's server.
func address(t *testing.T, b *base) string {
	t.Helper()
	if b.driver == "mysql" {
		config, err := mysql.ParseDSN(b.dsn)
		must(t, err)
		return config.Addr
	}
	u, err := url.Parse(b.dsn)
	must(t, err)
	return u.Host
}

// through returns the DSN of the base at another address.
func through(t *testing.T, b *base, address string) string {
	t.Helper()
	if b.driver == "mysql" {
		config, err := mysql.ParseDSN(b.dsn)
		must(t, err)
		config.Addr = address
		return config.FormatDSN()
	}
	u, err := url.Parse(b.dsn)
	must(t, err)
	u.Host = address
	return u.String()
}
