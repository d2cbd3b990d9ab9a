//go:build linux

package reliability

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// TestNetworkFailsBeforeCommit drops all data of the network between a statement and its
// commit. The server keeps the row locked and waits for the client, by default for hours.
// There is never more than one holder, but no other client can acquire the lock until the
// server's timeout. A setting of each connection can shorten that timeout.
func TestNetworkFailsBeforeCommit(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "halfway", "database, driver", "setting", "network fails before the commit of", "rival waits")
	each(t, servers, func(t *testing.T, place int, c cell) {
		b := c.newBase(t)
		for i, what := range []string{"an acquisition", "a renewal"} {
			if what == "a renewal" && c.driver != "mysql" {
				continue // it is a single statement without a separate commit
			}
			t.Run(what, func(t *testing.T) {
				var setting string
				var waited time.Duration
				withTTL(t, blackHoleTTL, func(ttl time.Duration) (longEnough bool) {
					setting, waited, longEnough = b.halfway(t, what == "a renewal", ttl)
					return longEnough
				})
				figures.add(2*place+i, c.name, setting, what, waited.Round(100*time.Millisecond))
			})
		}
	})
}

// halfway returns how long a rival has waited. longEnough is false if the lease was lost before the
// trial began.
func (b *base) halfway(t *testing.T, renewal bool, ttl time.Duration) (setting string, waited time.Duration, longEnough bool) {
	t.Helper()
	key := fmt.Sprint(t.Name(), ttl)
	n := newNetwork(t, b)
	setting, dsn := b.withServerTimeout(t, n.dsn)
	connector := flaky.New(b.db.Driver(), dsn)
	db := sqlx.NewDb(sql.OpenDB(connector), b.driver)
	t.Cleanup(func() { _ = db.Close() }) // its connections are broken
	r := b.renewing(t, db, ttl)
	silent := make(chan time.Time, 1)
	fallSilent := func() { // before the next commit
		once := sync.OnceFunc(func() {
			n.fallSilent()
			silent <- time.Now()
		})
		connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Commit && !m.Done {
				once()
			}
			return nil
		})
	}
	rivals := b.registry(t, b.db, sqllock.RegistryOptions{TTL: ttl})
	if !renewal {
		fallSilent()
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		if _, err := obtain(t, r, key).TryLock(ctx); err == nil {
			t.Fatal("acquired over a network that drops all data")
		}
		return setting, b.until(t, rival(t, rivals, ttl, key), <-silent), true
	}
	lease := acquire(t, r, key)
	ended := awaitEnd(lease)
	fallSilent()
	won := rival(t, rivals, ttl, key)
	var began time.Time
	select {
	case began = <-silent:
	case <-ended:
		return setting, 0, false
	}
	at, again := <-ended, make(chan win, 1)
	waited = b.until(t, won, began, func(w win) { again <- w })
	b.settle(t, lease, at, <-again)
	return setting, waited, true
}

// until returns how long the rival has waited since the network failed.
func (b *base) until(t *testing.T, won <-chan win, began time.Time, and ...func(win)) time.Duration {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case w := <-won:
		for _, fn := range and {
			fn(w)
		}
		return time.Since(began)
	case <-limit.C:
		t.Fatal("the server still waits for the lost client")
		return 0
	}
}

// withServerTimeout adds a setting to a DSN, with which the server ends the session of a client
// that does not end its transaction.
func (b *base) withServerTimeout(t *testing.T, dsn string) (setting, with string) {
	t.Helper()
	if b.driver == "mysql" {
		config, err := mysql.ParseDSN(dsn)
		must(t, err)
		config.Params = map[string]string{"idle_transaction_timeout": "3"}
		return "`idle_transaction_timeout=3`", config.FormatDSN()
	}
	u, err := url.Parse(dsn)
	must(t, err)
	query := u.Query()
	query.Set("idle_in_transaction_session_timeout", "3000")
	u.RawQuery = query.Encode()
	return "`idle_in_transaction_session_timeout=3000`", u.String()
}
