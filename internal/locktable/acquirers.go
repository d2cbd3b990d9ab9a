package locktable

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/transaction"
)

// serializable is how the database names the isolation of acquirers.
const serializable = "serializable"

// distrustFor is how long acquirers are not used after one was not what it should be.
const distrustFor = time.Minute

// acquirers are sessions for acquisitions, SERIALIZABLE by themselves: one statement is then a serializable transaction,
// without the round trips of BEGIN and COMMIT.
//
// It is not taken for granted that they are. Another program may reset a session, and a pooler may have ignored the
// setting, or have given a statement another session. So each statement returns the isolation in which it ran. If
// that is another one, the row is acquired once more, in an explicit transaction, and so are all others for a while.
type acquirers struct {
	pool       transaction.Pool
	onFallback func(error)
	distrusted atomic.Pointer[time.Time] // until then
}

// newAcquirers returns nil if there are none. They may be those of pool, where renewals are sent, too.
func newAcquirers(pool transaction.Pool, db *sql.DB, onFallback func(error)) *acquirers {
	if db == nil {
		return nil
	}
	if onFallback == nil {
		onFallback = func(error) {}
	}
	if db != pool.DB {
		pool.DB, pool.Gate = db, nil
	}
	return &acquirers{pool: pool, onFallback: onFallback}
}

// areTrusted reports whether the next acquisition may rely on them.
func (a *acquirers) areTrusted() bool {
	until := a.distrusted.Load()
	return until == nil || time.Now().After(*until)
}

// distrust makes acquisitions use explicit transactions for a while.
func (a *acquirers) distrust(why error) {
	until := time.Now().Add(distrustFor)
	if before := a.distrusted.Swap(&until); before == nil || time.Now().After(*before) {
		a.onFallback(why)
	}
}

// An isolationError says that a statement that acquired did not run in a serializable transaction.
type isolationError struct{ got string }

// Error implements error.
func (e *isolationError) Error() string {
	return fmt.Sprintf("the lock was acquired in a transaction that is %q, not %q", e.got, serializable)
}

// checkIsolation returns an error unless the isolation is that of acquirers.
func checkIsolation(got string) error {
	if got == serializable {
		return nil
	}
	return &isolationError{got}
}
