package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
)

// pass lets all leases end that are not renewed. In virtual time it waits. On a server it makes the rows so much
// older: what the holders know does not change, and no test depends on the speed of the machine.
func (f *fixture) pass() {
	f.Helper()
	f.hasten()
	if f.cell.InBubble != nil {
		// real time: in virtual time alone
		f.pause(2 * ttl)
	}
}

// hasten makes all rows expire on a server, for what waits for that. In virtual time that costs nothing.
func (f *fixture) hasten() {
	f.Helper()
	if f.cell.InBubble == nil {
		f.expire()
	}
}

// expire makes rows expire: those of keys, or all of the test's region.
func (f *fixture) expire(keys ...string) {
	f.Helper()
	f.age(2*ttl, keys...)
}

// age makes rows older, as if they had been written earlier: those of keys, or all of the test's region.
func (f *fixture) age(by time.Duration, keys ...string) {
	f.Helper()
	r := f.process()
	var lockKeys []string
	for _, key := range keys {
		lockKeys = append(lockKeys, check.Value(r.LockKey(key))(f))
	}
	columns := []string{"CREATED_DATE"}
	if f.cell.Layout == dialect.Spring7 {
		columns = append(columns, "EXPIRED_AFTER")
	}
	earlier := map[string]string{
		"postgres": "%[1]s = %[1]s - %[2]d * INTERVAL '1 millisecond'",
		"mysql":    "%[1]s = %[1]s - INTERVAL %[2]d * 1000 MICROSECOND",
		"sqlite":   "%[1]s = datetime(%[1]s, 'subsec', printf('%%.3f seconds', -%[2]d / 1000.0))",
	}[sqltext.Of(f.cell.Dialect).Name]
	for i, column := range columns {
		columns[i] = fmt.Sprintf(earlier, column, by.Milliseconds())
	}
	for _, row := range f.rows(r) {
		if keys != nil && !slices.Contains(lockKeys, row.LockKey) {
			continue
		}
		// By primary key: MySQL would lock the rows of other tests, too.
		f.exec("UPDATE INT_LOCK SET " + strings.Join(columns, ", ") + " WHERE LOCK_KEY = '" + row.LockKey + "' AND REGION = '" + f.region + "'")
	}
}

// withTTL calls try with a time-to-live whose end it waits for, and again with twice the last until try returns true:
// the machine was fast enough to acquire such a lease. try must fail the test for whatever else goes wrong.
func (f *fixture) withTTL(try func(ttl time.Duration) (longEnough bool)) {
	f.Helper()
	for d := 4 * short; !try(d); d *= 2 {
		if f.Logf("a time-to-live of %v was too short", d); d > ttl {
			f.Fatal("no time-to-live was long enough")
		}
	}
}

// guardBeyond acquires a lease, guards a transaction by it, and lets the lease's rows expire meanwhile.
func (f *fixture) guardBeyond(acquire func() *sqllock.Lease) (guarded *sqllock.Lease, tx appTx) {
	f.Helper()
	try := func(left time.Duration) bool {
		guarded = acquire()
		if f.cell.InBubble == nil {
			f.age(ttl - left)
		}
		tx = f.begin(nil)
		err := tx.guard(f.Context(), guarded)
		if f.cell.InBubble == nil && errors.Is(err, sqllock.ErrLockLost) { // the rows have expired before
			f.must(tx.rollback())
			return false
		}
		f.must(err)
		return true
	}
	if f.cell.InBubble != nil {
		try(ttl)
		f.pass()
		f.is(context.Cause(guarded.Context()), sqllock.ErrLockLost)
		return guarded, tx
	}
	f.withTTL(try)
	for r := f.process(); slices.ContainsFunc(f.rows(r), func(row sqllock.Row) bool { return !row.Expired() }); {
		f.pause(short / 10)
	}
	return guarded, tx
}

// pause waits, between two polls or for what must not happen.
func (f *fixture) pause(d time.Duration) {
	f.Helper()
	// real time: its callers give their reasons, unless they poll
	if !bounded.Sleep(f.Context(), d) {
		f.Fatal(f.Context().Err())
	}
}
