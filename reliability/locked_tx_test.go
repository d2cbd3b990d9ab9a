//go:build linux

package reliability

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
)

// TestExecuteLockedTxIntoABlackHole drops all data of the network while a function runs in a
// guarded transaction. ExecuteLockedTx must return at the end of the lease. Neither lib/pq
// nor go-sql-driver/mysql checks the context while it waits for the response to a COMMIT;
// lib/pq does so for no statement. The statements of the function are its own.
func TestExecuteLockedTxIntoABlackHole(t *testing.T) {
	inParallel(t)
	each(t, servers, func(t *testing.T, _ int, c cell) {
		b := c.newBase(t)
		for name, work := range map[string]func(context.Context, *sqlx.Tx) error{
			"commit": func(context.Context, *sqlx.Tx) error { return nil },
			"wait": func(ctx context.Context, _ *sqlx.Tx) error {
				<-ctx.Done()
				return ctx.Err()
			},
			"statement": func(ctx context.Context, tx *sqlx.Tx) error {
				if b.driver == "postgres" {
					return nil
				}
				_, err := tx.ExecContext(ctx, "SELECT 1")
				return err
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b.lockedTx(t, work)
			})
		}
	})
}

func (b *base) lockedTx(t *testing.T, work func(context.Context, *sqlx.Tx) error) {
	t.Helper()
	n := newNetwork(t, b)
	db := open(t, b.driver, n.dsn, 3)
	r := b.renewing(t, db, blackHoleTTL)
	answer := make(chan error, 1)
	go func() {
		answer <- r.ExecuteLockedTxx(t.Context(), t.Name(), db, nil, func(ctx context.Context, tx *sqlx.Tx) error {
			n.fallSilent()
			return work(ctx, tx)
		})
	}()
	limit := time.NewTimer(promptly)
	defer limit.Stop()
	select {
	case err := <-answer:
		if err == nil {
			t.Error("committed over a network that drops all data")
		}
		t.Log(err)
	case <-limit.C:
		t.Error("the call waits for a response that does not come")
	}
	n.breakDown()
}
