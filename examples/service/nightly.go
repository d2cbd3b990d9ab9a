package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/job"
)

// closingKey is the key of the job's lock. It is the same in all versions of the service.
const closingKey = "closing"

// closing returns the nightly job, which writes down the sum of all balances. After a success all calls of the next four
// hours skip it, which is longer than nightly calls it in one night. After an error, or if its instance dies, the next call on any
// instance runs it again. An instance can die between the COMMIT and the end of the run, so what makes the
// closing happen once a day is its row.
func (b *bank) closing() func(context.Context) error {
	return job.New(b.registry, closingKey, 4*time.Hour, func(ctx context.Context) error {
		// ctx has the lease of the job, so this enters its lock again, and guards the transaction.
		return b.registry.ExecuteLockedTx(ctx, closingKey, b.db, nil, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO closing (day, total) SELECT $1, SUM(balance) FROM account WHERE true ON CONFLICT (day) DO NOTHING",
				time.Now().Format(time.DateOnly))
			return err
		})
	}, job.UntilSuccess())
}

// nightly calls a job every ten minutes between three and six o'clock, until ctx ends. It runs on every instance.
func nightly(ctx context.Context, closing func(context.Context) error) {
	ticker := time.NewTicker(10 * time.Minute)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			if now.Hour() < 3 || now.Hour() >= 6 {
				continue
			}
			if err := closing(ctx); err != nil && !errors.Is(err, sqllock.ErrNotAcquired) {
				slog.ErrorContext(ctx, "the closing failed; the next call tries again", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
