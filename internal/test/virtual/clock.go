package virtual

import (
	"database/sql/driver"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// now is the function that replaces SQLite's 'now'. It runs on the goroutine that sends the
// statement, so it finds the clock of that goroutine's bubble.
const now = "sqllock_test_now"

func goTime(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
	return time.Now().UTC().Format("2006-01-02 15:04:05.000"), nil // SQLite's resolution; it cuts, too
}

// onGosClock returns a statement with Go's clock in it.
func onGosClock(query string) string {
	return strings.ReplaceAll(query, "'now'", now+"()")
}
