//go:build linux

package reliability

import (
	"net/url"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/test/wire"
)

// A network is a connection to a server that can be made to drop all data.
type network struct {
	*wire.Proxy
	dsn string // through this network
}

// newNetwork returns a network to the base.
func newNetwork(t *testing.T, b *base) *network {
	t.Helper()
	if b.driver == "mysql" {
		config, err := mysql.ParseDSN(b.dsn)
		must(t, err)
		proxy := wire.New(t, config.Addr)
		config.Addr = proxy.Addr
		return &network{proxy, config.FormatDSN()}
	}
	u, err := url.Parse(b.dsn)
	must(t, err)
	proxy := wire.New(t, u.Host)
	u.Host = proxy.Addr
	return &network{proxy, u.String()}
}
