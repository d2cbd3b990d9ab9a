// Package sqllocktest gives a unit test a lock registry on a database of its own, in about two
// milliseconds and without a server.
//
//	func TestShippingStopsWhenTheLockIsLost(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			locks := sqllocktest.New(t, nil)
//			err := ship(t.Context(), locks.Registry, func(ctx context.Context) error {
//				locks.Lose("orders/42") // another process has the lock now
//				return ctx.Err()        // the code under test should not go on
//			})
//			if !errors.Is(err, sqllock.ErrLockLost) {
//				t.Error(err)
//			}
//		})
//	}
//
// The registry is a real one, on a real SQLite database. In a bubble of [testing/synctest] the
// database uses the clock of the bubble: a lease of an hour ends at once when every goroutine of
// the bubble waits, and a busy machine ends no lease early. Outside of a bubble time is real.
// Call [New] in the bubble that uses the registry: one from outside makes the program panic when the
// registry is closed. In a bubble, t.Parallel and t.Run are not allowed: call t.Parallel before
// synctest.Test.
//
// # What it does not show
//
//   - The errors, waits and isolation of PostgreSQL and MySQL. In SQLite one transaction that
//     writes blocks all others, whatever rows they write. Test transactions with
//     [sqllock.Lease.Guard] on the database that you use.
//   - Wake-ups: SQLite cannot notify, so waiters poll.
//
// The package links modernc.org/sqlite, which registers the database/sql driver "sqlite". A test
// program cannot link another driver of that name.
package sqllocktest
