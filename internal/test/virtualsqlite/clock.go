package virtualsqlite

import (
	"database/sql/driver"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
)

// now is the function that replaces SQLite's 'now'. It runs on the goroutine that sends the
// statement, so it finds the clock of that goroutine's bubble.
const now = "sqllock_test_now"

// clock, if set, is another clock than time.Now.
var clock atomic.Pointer[func() time.Time]

// ReplaceClock gives all databases of this process another clock, until restore is called: one
// that is wrong, for instance.
func ReplaceClock(now func() time.Time) (restore func()) {
	before := clock.Swap(&now)
	return func() { clock.Store(before) }
}

func goTime(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
	now := time.Now
	if other := clock.Load(); other != nil {
		now = *other
	}
	return now().UTC().Format("2006-01-02 15:04:05.000"), nil // SQLite's resolution; it cuts, too
}

// onGosClock returns a statement with Go's clock in it.
func onGosClock(query string) string {
	return strings.ReplaceAll(query, "'now'", now+"()")
}
