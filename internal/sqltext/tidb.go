package sqltext

import (
	"maps"
	"strings"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

// LeastTTLOfTiDB is the [Dialect.LeastTTL] of TiDB. Tests whose server waits for no other change it.
var LeastTTLOfTiDB = 10 * time.Second

// TiDB returns the dialect of TiDB. It speaks MySQL's protocol and most of its statements:
//
//   - SERIALIZABLE is refused. A repository that is to acquire in Serializable transactions, as it is by default,
//     takes READ COMMITTED ones.
//   - SKIP LOCKED neither skips rows nor locks them. A statement that must not wait for a row fails there
//     instead: see [Dialect.PicksOrFails].
//   - LOCK IN SHARE MODE is refused or locks nothing. A guarded transaction changes the row of its lease, so that one
//     at a time is under a lease.
//   - SET TRANSACTION does not fail inside a transaction. What an application has left open is rolled back.
//   - Numbers are cached by each server, unless the table has AUTO_ID_CACHE 1, as that of fencing tokens must.
//   - After a failure of the server that gives out these numbers no lock is acquired for ten seconds, or for a minute if that
//     server has been without PD: see [Dialect.LeastTTL].
//
// On another server it is refused, as [MySQL] is on TiDB.
func TiDB() Dialect {
	d := MySQL()
	d.Engine, d.LacksSerializable, d.LeastTTL = "TiDB", true, LeastTTLOfTiDB
	d.PicksOrFails, d.Outside = true, "ROLLBACK"
	d.Classify = classifyTiDB
	f := &d.fragments
	const skip, lock = "SKIP LOCKED", " FOR UPDATE SKIP LOCKED"
	f.pick, f.pickAny = strings.Replace(f.pick, skip, "NOWAIT", 1), strings.Replace(f.pickAny, skip, "NOWAIT", 1)
	f.pickExpired, f.pickClient = strings.TrimSuffix(f.pickExpired, lock), strings.TrimSuffix(f.pickClient, lock)
	f.pickAll, f.look = "", "" // there is no SELECT … INTO
	f.acquire, f.acquireAll = maps.Clone(f.acquire), maps.Clone(f.acquireAll)
	for _, texts := range []map[dialect.Layout]string{f.acquire, f.acquireAll} {
		texts[dialect.Spring6] = strings.Replace(texts[dialect.Spring6], fourColumns, fourColumnsOfTiDB, 1)
	}
	f.guard, f.guardAll = "", ""
	f.pin = ""
	f.turns = Turns{} // GET_LOCK is no queue
	f.fence = "SHOW CREATE TABLE {fence}"
	f.cluster, f.member = tidbFacts, ""
	return d
}

// fourColumnsOfTiDB is fourColumns in an INSERT. TiDB does not take a name of ON DUPLICATE KEY UPDATE for
// ambiguous: it is the lock table's. So the SELECT has that table, too, and reads no row of it. Otherwise
// a process that goes by CREATED_DATE would acquire locks in a table that has EXPIRED_AFTER: if the
// column is new, or sql_mode is not strict.
const fourColumnsOfTiDB = fourColumns + " LEFT JOIN {table} AS other ON 1 = 0" + fourAlone

// tidbFacts are those of clusterFacts that TiDB has. In its optimistic transactions FOR UPDATE locks nothing.
const tidbFacts = sessionFacts +
	" UNION ALL SELECT 'session', IF(@@SESSION.tidb_txn_mode = 'pessimistic', '', CONCAT(' tidb_txn_mode=', @@SESSION.tidb_txn_mode))"

func classifyTiDB(err error) Class {
	switch number, _ := numberIn(err, "Number"); number {
	case 8002, // ErrForUpdateCantRetry
		8022, // ErrKVErrRetryable
		8028, // ErrInfoSchemaChanged
		9007: // ErrWriteConflict
		return Transient
	case 8004: // ErrTxnTooLarge
		return TooLarge
	case 1105: // ErrUnknown
		if strings.Contains(err.Error(), "retry limit reached") { // of a statement that has met others again and again
			return Transient
		}
	}
	return classifyMySQL(err)
}
