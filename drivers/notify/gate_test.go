package notify_test

import (
	"net/url"
	"testing"

	"github.com/sqllock/sqllock/drivers/notify"
	"github.com/sqllock/sqllock/internal/test/wire"
)

// A gate is a network that can refuse connections.
type gate struct {
	*wire.Proxy

	server string
}

// newGatedFixture returns a fixture whose listener connects through a gate and has short
// timeouts. The channel receives what OnConnection is called with.
func newGatedFixture(t *testing.T) (*fixture, gate, chan error) {
	t.Helper()
	f, connection := newFixtureWithoutListener(t), make(chan error, 1000)
	dsn, err := url.Parse(f.dsn)
	must(t, err)
	g := gate{wire.New(t, dsn.Host), dsn.Host}
	dsn.Host = g.Addr
	listener, err := notify.ListenImpatiently(t.Context(), dsn.String(), &notify.Options{
		OnConnection: func(err error) { connection <- err },
	})
	must(t, err)
	f.setListener(listener)
	return f, g, connection
}

// close breaks the connections, and refuses new ones.
func (g gate) close() { g.LeadTo("") }

func (g gate) open() { g.LeadTo(g.server) }
