//go:build linux

package reliability

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
)

// TestPool has an application use all connections of its pool for several times-to-live, in virtual time:
// what is scarce is in database/sql, whatever the server. All leases that are renewed over a pool of
// sqllock's own are kept. Leases that share the application's pool are lost, which is safe: each ends
// before its row.
func TestPool(t *testing.T) {
	t.Parallel()
	const leases, ttl, poolSize = 50, 3 * time.Second, 5
	synctest.Test(t, func(t *testing.T) {
		db := virtual.Migrated(t, dialect.Spring7)
		b := &base{cell: sqlite, dsn: db.DSN, db: db.DB}
		app, own := open(t, virtualsqlite.Name, db.DSN, poolSize), open(t, virtualsqlite.Name, db.DSN, 2)
		acquireAll := func(pool *sqlx.DB, prefix string) (all []*sqllock.Lease) {
			r := b.registry(t, pool, sqllock.RegistryOptions{TTL: ttl})
			for i := range leases {
				all = append(all, locked(t, obtain(t, r, fmt.Sprint(prefix, i))))
			}
			return all
		}
		kept, shared := acquireAll(own, "own"), acquireAll(app, "shared")
		for range poolSize {
			conn := check.Value(app.Connx(t.Context()))(t)
			defer func() { _ = conn.Close() }()
		}
		for _, lease := range shared {
			<-lease.Context().Done()
			lost(t, "cause", context.Cause(lease.Context()))
			if row, there, err := b.repository(t, b.db).Peek(t.Context(), lease.Key()); err != nil || !there || row.Expired() {
				t.Errorf("%s has ended after its row: %+v, %v", lease.Key(), row, err)
			}
		}
		time.Sleep(3 * ttl)
		for _, lease := range kept {
			must(t, lease.Context().Err())
			must(t, lease.Unlock(t.Context()))
		}
	})
}
