package servers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/wire"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// An uncontended pair of Lock and Unlock takes two round trips, serializable and with a fencing token, counted on the
// wire; so does a fair one. Behind PgBouncer an
// acquisition is an explicit transaction.
//
// A joint lock takes as many round trips for ten keys as for two: BEGIN, one statement, COMMIT, and one for the
// release. On MariaDB and MySQL the rows are read first, and BEGIN and the statements are one message, as is the
// transaction of the release. A caller that wants a permit reads first. A reader reads the writer's row after it has
// its own. A writer reads all rows before and after.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	for _, test := range []struct {
		opener                               string
		single, joint, permit, read, written int
	}{
		{"pgxlock", 2, 4, 3, 3, 4},
		{"pqlock", 2, 4, 3, 3, 4},
		{"mysqllock", 2, 4, 3, 3, 4},
		{"mysqllock, Oracle's server", 2, 4, 3, 3, 4},
		{"pgxlock, PgBouncer", 4, 4, 5, 5, 6},
		{"pqlock, PgBouncer", 4, 4, 5, 5, 6},
	} {
		o := byName(t, test.opener)
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			db := up(t, o.database)
			proxy, dsn := wire.Through(t, db.DSN)
			registry := o.opened(t, dsn, quiet)
			permits := check.Value(semaphore.New(registry, "s", 10))(t)
			readWrite := check.Value(rwlock.New(registry, "rw"))(t)
			for _, pair := range []struct {
				name string
				lock func(context.Context) (*sqllock.Lease, error)
				want int
			}{
				{"single", obtain(t, registry, "k").Lock, test.single},
				{"fair", obtain(t, registry, "k").WithFair(!strings.Contains(o.name, "PgBouncer")).Lock, test.single},
				{"joint", obtainAll(t, registry, keys...).Lock, test.joint},
				{"permit", func(ctx context.Context) (*sqllock.Lease, error) { return permits.Acquire(ctx, 1) }, test.permit},
				{"permits", func(ctx context.Context) (*sqllock.Lease, error) { return permits.Acquire(ctx, 3) }, 1 + test.joint},
				{"reader", readWrite.RLock, test.read},
				{"writer", readWrite.Lock, test.written},
			} {
				t.Run(pair.name, func(t *testing.T) {
					checkRoundTrips(t, proxy, pair.want, func() {
						lease := check.Value(pair.lock(t.Context()))(t)
						if lease.Token() == 0 {
							t.Error("no fencing token")
						}
						must(t, lease.Unlock(t.Context()))
					})
				})
			}
		})
	}
}

// quiet has no names, which would be written of a lock that a slow machine holds for a second.
var quiet = openOptions{registry: sqllock.RegistryOptions{TTL: ttl, DisableNames: true, NoRenew: true}}

// checkRoundTrips checks how many round trips pair takes, which locks and unlocks.
func checkRoundTrips(t *testing.T, proxy *wire.Proxy, want int, pair func()) {
	t.Helper()
	pair() // connects, and pgx prepares
	pair()
	proxy.Trips()
	counts := make([]int, 11)
	for i := range counts {
		pair()
		counts[i] = proxy.Trips()
	}
	// The median: now and then a statement in the background keeps the table of tokens small.
	slices.Sort(counts)
	if counts[0] != want || counts[len(counts)/2] != want {
		t.Errorf("round trips of the pairs: %v, want %d", counts, want)
	}
}

// What a joint lock sends does not grow with its keys: to guard a transaction, to keep its rows for a minimum hold,
// and to delete rows that an outage has left, before the next attempt and in Close.
func TestRoundTrips_OfAThousandKeys(t *testing.T) {
	t.Parallel()
	type scene struct {
		t        *testing.T
		proxy    *wire.Proxy
		registry *sqllock.Registry
		app      *sqlx.DB
		keys     []string
	}
	trips := func(s scene, do func()) int {
		s.proxy.Trips()
		do()
		return s.proxy.Trips()
	}
	leave := func(s scene) { // an Unlock during an outage
		lease := check.Value(obtainAll(s.t, s.registry, s.keys...).TryLock(s.t.Context()))(s.t)
		target := s.proxy.LeadTo("")
		is(s.t, lease.Unlock(s.t.Context()), sqllock.ErrDatabase)
		s.proxy.LeadTo(target)
	}
	const (
		prepared = 5 // a statement for many keys may be another one, which is prepared
		// After an outage the sweep of leftovers counts, too, and the connection that is opened for it: as often as a
		// slow server lets them come before it has deleted a thousand rows.
		swept = sqllock.MaxKeys / 20
	)
	for _, test := range []struct {
		name  string
		more  int // round trips that a thousand keys may take more than ten
		count func(scene) int
	}{
		{"guard", prepared, func(s scene) (n int) {
			lease := check.Value(obtainAll(s.t, s.registry, s.keys...).TryLock(s.t.Context()))(s.t)
			tx := check.Value(s.app.BeginTxx(s.t.Context(), nil))(s.t)
			n = trips(s, func() { must(s.t, lease.Guard(s.t.Context(), tx)) })
			must(s.t, tx.Commit())
			must(s.t, lease.Unlock(s.t.Context()))
			return n
		}},
		{"minimum hold", prepared, func(s scene) int {
			lease := check.Value(obtainAll(s.t, s.registry, s.keys...).WithMinHold(ttl).TryLock(s.t.Context()))(s.t)
			return trips(s, func() { must(s.t, lease.Unlock(s.t.Context())) })
		}},
		{"attempt", swept, func(s scene) int {
			leave(s)
			return trips(s, func() {
				once(s.t, obtainAll(s.t, s.registry, s.keys...).TryLock)
			})
		}},
		{"close", swept, func(s scene) int {
			leave(s)
			n := trips(s, func() { must(s.t, s.registry.Close(s.t.Context())) })
			var rows int
			must(s.t, s.app.GetContext(s.t.Context(), &rows, "SELECT COUNT(*) FROM INT_LOCK"))
			if rows > 0 {
				s.t.Errorf("%d rows are left", rows)
			}
			return n
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, o := range onServers(t) {
				t.Run(o.name, func(t *testing.T) {
					t.Parallel()
					db := up(t, o.database)
					proxy, dsn := wire.Through(t, db.DSN)
					app := check.Value(sqlx.Open(db.DB.DriverName(), dsn))(t)
					t.Cleanup(func() { _ = app.Close() })
					counted := func(keys int) int {
						s := scene{t, proxy, o.opened(t, dsn, quiet), app, nil}
						for i := range keys {
							s.keys = append(s.keys, fmt.Sprint(keys, "/", i))
						}
						return test.count(s)
					}
					few, many := counted(10), counted(sqllock.MaxKeys)
					if many > few+test.more {
						t.Errorf("%d round trips for 10 keys, %d for %d", few, many, sqllock.MaxKeys)
					}
				})
			}
		})
	}
}
