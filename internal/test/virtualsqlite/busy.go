package virtualsqlite

import (
	"context"
	"errors"
	"time"

	"modernc.org/sqlite"

	"github.com/sqllock/sqllock/internal/bounded"
)

// busyTimeout is what [DSN] sets as SQLite's busy_timeout.
const busyTimeout = 10 * time.Second

// busyPauses are those of SQLite's own wait, sqliteDefaultBusyCallback, in milliseconds. The
// last one is repeated.
var busyPauses = []time.Duration{1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100}

// The codes that SQLite's own wait is for. SQLITE_BUSY_SNAPSHOT is not one of them: it stays
// until the transaction is rolled back.
const (
	codeBusy         = 5
	codeBusyRecovery = 5 | 1<<8
)

// awaited runs an operation again and again while another connection writes, as SQLite does
// with a busy_timeout. If patient is false, it runs it once.
func awaited[R any](ctx context.Context, patient bool, run func() (R, error)) (R, error) {
	began := time.Now()
	for tries := 0; ; tries++ {
		result, err := run()
		if !patient || !isBusy(err) || time.Since(began) >= busyTimeout {
			return result, err
		}
		if !bounded.Sleep(ctx, busyPauses[min(tries, len(busyPauses)-1)]*time.Millisecond) {
			return result, ctx.Err()
		}
	}
}

func isBusy(err error) bool {
	var failure *sqlite.Error
	return errors.As(err, &failure) && (failure.Code() == codeBusy || failure.Code() == codeBusyRecovery)
}
