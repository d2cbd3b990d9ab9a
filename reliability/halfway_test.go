//go:build linux

package reliability

import (
	"context"
	"database/sql"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// TestSilenceBeforeCommit lets the network fall silent between a statement and its
// commit. The server waits for a client that it takes for alive, with the row
// locked, for as long as it waits for clients: hours by default. Nobody holds the
// lock twice, but nobody gets it either, until the server gives up. It does soon
// with a setting that every connection of sqllock's can bring along.
func TestSilenceBeforeCommit(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "halfway", "database, driver", "setting", "network fails before the commit of", "rival waits")
	each(t, servers, func(t *testing.T, place int, c cell) {
		b := c.newBase(t)
		for i, what := range []string{"an acquisition", "a renewal"} {
			if what == "a renewal" && c.driver != "mysql" {
				continue // it is a statement of its own, without a commit
			}
			t.Run(what, func(t *testing.T) {
				setting, waited := b.halfway(t, what == "a renewal")
				figures.add(2*place+i, c.name, setting, what, waited.Round(100*time.Millisecond))
			})
		}
	})
}

func (b *base) halfway(t *testing.T, renewal bool) (setting string, waited time.Duration) {
	t.Helper()
	n := newNetwork(t, b)
	setting, dsn := b.impatient(t, n.dsn)
	connector := flaky.New(b.db.Driver(), dsn)
	db := sqlx.NewDb(sql.OpenDB(connector), b.driver)
	t.Cleanup(func() { _ = db.Close() }) // its connections have been broken
	r := b.renewing(t, db, blackHoleTTL)
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
	rivals := b.registry(t, b.db, sqllock.RegistryOptions{TTL: blackHoleTTL})
	if !renewal {
		fallSilent()
		ctx, cancel := context.WithTimeout(t.Context(), blackHoleTTL)
		defer cancel()
		if _, err := obtain(t, r, t.Name()).TryLock(ctx); err == nil {
			t.Fatal("acquired over a network that is silent")
		}
		return setting, b.until(t, rival(t, rivals, blackHoleTTL, t.Name()), <-silent)
	}
	lease := acquire(t, r, t.Name())
	ended := awaitEnd(lease)
	fallSilent()
	won := rival(t, rivals, blackHoleTTL, t.Name())
	var began time.Time
	select {
	case began = <-silent:
	case <-ended:
		t.Skip("the machine is too busy: the lease was lost before the trial began")
	}
	at, again := <-ended, make(chan win, 1)
	waited = b.until(t, won, began, func(w win) { again <- w })
	b.settle(t, lease, at, <-again)
	return setting, waited
}

// until returns how long the rival has waited since the silence began.
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
		t.Fatal("the server still waits for a client that is gone")
		return 0
	}
}

// impatient adds to a DSN what makes the server give up a client that does not end
// its transaction.
func (b *base) impatient(t *testing.T, dsn string) (setting, with string) {
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
