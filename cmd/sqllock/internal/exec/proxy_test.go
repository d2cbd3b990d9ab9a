//go:build unix

package exec

import (
	"net/url"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/wire"
)

// A proxy leads to PostgreSQL.
type proxy struct {
	*wire.Proxy
	dsn        string              // through the proxy
	repository *sqllock.Repository // not through the proxy
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	db := dbtest.Postgres(t)
	dsn := check.Value(url.Parse(db.DSN))(t)
	p := &proxy{Proxy: wire.New(t, dsn.Host), repository: migrated(t, db)}
	dsn.Host = p.Addr
	p.dsn = dsn.String()
	return p
}
