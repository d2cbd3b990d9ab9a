package wire

import (
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/test/check"
)

// Through returns a proxy to the server of a DSN, a URL of PostgreSQL or a DSN of go-sql-driver/mysql, and the
// DSN that leads through the proxy.
func Through(tb testing.TB, dsn string) (*Proxy, string) {
	tb.Helper()
	if strings.Contains(dsn, "://") {
		u := check.Value(url.Parse(dsn))(tb)
		p := New(tb, u.Host)
		u.Host = p.Addr
		return p, u.String()
	}
	config := check.Value(mysql.ParseDSN(dsn))(tb)
	p := New(tb, config.Addr)
	config.Net, config.Addr = "tcp", p.Addr
	return p, config.FormatDSN()
}
