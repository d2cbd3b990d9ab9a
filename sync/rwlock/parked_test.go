package rwlock_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/seatkey"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestAReleasedSeatIsLeftAlone has a writer meet a reader's seat that is free, but has a row: that of a busy key, or of a minimum
// hold. To take it over would cost two transactions.
func TestAReleasedSeatIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		holder string
		left   int // rows
	}{{"other-k0123456789", 1}, {"other-0123456789a", 0}} {
		runInBubble(t, test.holder, func(f *fixture) {
			p := f.process()
			p.crashed(seatkey.Seat(lockKey, "reader", 0), time.Second)
			f.DB.DB.MustExec("UPDATE INT_LOCK SET CLIENT_ID = ?", test.holder)
			time.Sleep(2 * time.Second)
			f.Unlock(f.get(p.rw.TryLock))
			if rows := check.Value(p.repository.List(f.Context()))(f); len(rows) != test.left {
				f.Errorf("%d rows are left: %+v", len(rows), rows)
			}
		})
	}
}

// TestAReleasedWriteLockIsLeftAlone has readers meet the write lock's row, free in the same ways. While one took it over, others
// would be refused, although there is no writer.
func TestAReleasedWriteLockIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		holder string
		left   int // rows
	}{{"other-k0123456789", 1}, {"other-0123456789a", 0}} {
		runInBubble(t, test.holder, func(f *fixture) {
			p := f.process()
			p.crashed(lockKey, time.Second)
			f.DB.DB.MustExec("UPDATE INT_LOCK SET CLIENT_ID = ?", test.holder)
			time.Sleep(2 * time.Second)
			f.Unlock(f.get(p.rw.TryRLock))
			if rows := check.Value(p.repository.List(f.Context()))(f); len(rows) != test.left {
				f.Errorf("%d rows are left: %+v", len(rows), rows)
			}
		})
	}
}
