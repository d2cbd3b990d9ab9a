package sqllocktest_test

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/contract"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/sqllocktest"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// TestContract runs a test of each part of the contract on the databases of New. The other tests would show what
// they show on the cells of SQLite, whose driver is the same.
func TestContract(t *testing.T) {
	t.Parallel()
	contract.Run(t, contract.Cell{
		Dialect: dialect.SQLite(), Layout: dialect.Spring7, Isolation: sqllock.Serializable,
		InBubble: func(tb testing.TB) *sqlx.DB {
			tb.Helper()
			return sqlx.NewDb(sqllocktest.New(tb, nil).DB(), "sqlite")
		},
		Only: []string{
			"Repository/AnExpiredRowIsTakenOver", "Lease/TheContextEndsWithErrLockLostBeforeAnotherHolderAcquires",
			"Renewal/TheHeartbeatReportsADeletedRow", "Fencing/TokensRiseAcrossACrashAndADeletion", "Contention/ACounterLosesNoUpdate",
			"Waiting/LockWaitsForUnlockInAnotherProcess", "HandOff/UnlockHandsTheRowToTheNextWaiter",
			"Batching/EachCallerGetsItsOwnResult", "Guard/ATakeOverWaitsForTheGuardedTransaction", "Joint/AJointLockIsAllOrNothing",
			"Semaphore/NeverMoreHoldersThanPermits", "ReadWrite/ReadersAreBesideEachOtherAndAWriterIsAlone", "Leader/ElectorsLeadInTurn",
		},
	}, func(r contract.Result) {
		check.Equal(t, "tests of the contract", r.Run, 13)
	})
}
