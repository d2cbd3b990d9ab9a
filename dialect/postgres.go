package dialect

import (
	"errors"
	"strings"
)

// Postgres returns the dialect of PostgreSQL 10 and later, for lib/pq and pgx
// alike. No statement of it fails on the normal path, so none aborts a
// transaction or writes to the server's log.
func Postgres() Dialect {
	return Dialect{
		Name:      "postgres",
		Numbered:  true,
		Returning: true,
		JSONLists: true,
		Notifies:  true,
		Classify:  classifyPostgres,
		fragments: fragments{
			// Not now(): that is the start of the transaction, so a lease
			// taken after a wait could be born expired.
			now:     "(clock_timestamp() AT TIME ZONE 'UTC')",
			plus:    "({base} + CAST({micros} AS BIGINT) * INTERVAL '1 microsecond')",
			between: "CAST(EXTRACT(EPOCH FROM ({to} - {from})) * 1000000 AS BIGINT)",
			epoch:   "TIMESTAMP '1970-01-01'",
			exact:   "{text}",
			latest:  "GREATEST",
			acquire: upsertReturning,
			acquireAll: filled(upsertAll,
				"{row.key}", "mine.k",
				"{row.holder}", "mine.h",
				"{row.now}", "(SELECT {now})",
				"{row.end}", "(SELECT {now}) + mine.l * INTERVAL '1 microsecond'",
				"{row.again}", "{now} + (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)",
				"{rows}", "{patient.select}, json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36), l BIGINT)"),
			token: "nextval('{fence}')",
			tell:  notifyGone,
			mine:  mineHashed,
			// The columns are CHAR(36): compared as text, no index would be used.
			items: "(SELECT CAST(item AS CHAR(36)) FROM json_array_elements_text(CAST({list} AS JSON)) AS item)",
			// FOR KEY SHARE would let a take-over pass.
			guard: "SELECT 1 FROM {table} WHERE {row} AND CLIENT_ID = :holder AND {valid} FOR SHARE",
			// Whatever the planner believes of the table, two hash tables: see mineHashed.
			renewAll: `WITH free AS (SELECT LOCK_KEY FROM {table} WHERE {mine} AND {valid} AND ` + fewHeld + ` FOR NO KEY UPDATE SKIP LOCKED)
UPDATE {table} SET {prolong} WHERE REGION = :region AND (LOCK_KEY IN (SELECT LOCK_KEY FROM free)) IS TRUE RETURNING LOCK_KEY, CLIENT_ID`,
			// ONLY, because rows of two partitions may have the same ctid. Those of a
			// partitioned table are not found by this, and are deleted one by one.
			deleteAll: `DELETE FROM ONLY {table} WHERE ctid = ANY (ARRAY(
SELECT held.ctid FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)), ONLY {table} AS held
WHERE ` + settings + ` AND held.REGION = :region AND held.LOCK_KEY = mine.k AND held.CLIENT_ID = mine.h AND ` + fewRows + `
FOR UPDATE OF held SKIP LOCKED)) AND ` + planAnew + `
RETURNING LOCK_KEY, {gone}`,
			deleteExpired: `DELETE FROM {table} WHERE REGION = :region AND (LOCK_KEY IN
(SELECT LOCK_KEY FROM {table} WHERE REGION = :region AND {expired} AND ` + fewHeld + ` FOR UPDATE SKIP LOCKED)) IS TRUE`,
			deleteClient: `DELETE FROM {table} WHERE REGION = :region AND (LOCK_KEY IN
(SELECT LOCK_KEY FROM {table} WHERE {of client} AND ` + fewHeld + ` FOR UPDATE SKIP LOCKED)) IS TRUE`,
			patience: patience{
				inSelect: "FROM " + lockTimeout,
				inUpdate: " FROM set_config('lock_timeout', '1000', true) AS patience", // where many try, a queue takes its time
				inDelete: " USING " + lockTimeout + ", " + notDurable,
			},
			readOnly: "SELECT CAST(current_setting('transaction_read_only') = 'on' AS INTEGER)",
			version:  "SELECT version()",
		},
	}
}

// lockTimeout sets how long the statement that it stands in waits for a row, in
// milliseconds, until the transaction ends. It is evaluated before the row is
// locked, and saves the round trip of a SET LOCAL.
const (
	setLockTimeout = "set_config('lock_timeout', '250', true)"
	lockTimeout    = setLockTimeout + " AS patience"
)

// notDurable has the commit of a release wait neither for the disk nor for a replica,
// which is most of what a release would cost. A crash of the server may forget the last
// of them: then the row stays until its time-to-live ends, as if its holder had crashed.
// It is not forgotten once somebody else has acquired the lock, for that commit
// waits, and the log is written in order.
const (
	setNotDurable = "set_config('synchronous_commit', 'off', true)"
	notDurable    = setNotDurable + " AS haste"
)

// settings is lockTimeout and notDurable as a condition, which is true. It is evaluated
// once, and costs the planner less than more items in FROM.
const settings = "(SELECT " + setLockTimeout + " || " + setNotDurable + ") <> ''"

// planAnew is true, and has the server plan the statement that it stands in for each
// execution. Drivers that prepare statements would have it keep a plan that was made
// when the table was small and that reads all of it, while locks that come and go leave a
// hundred thousand dead rows behind until the next VACUUM. It keeps a plan only if that
// seems to cost no more than plans for the values at hand; and for all it knows
// then, :region may be empty, so that a million rows have to be counted.
const planAnew = "(:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0)"

// mineHashed looks up each row of the table in a hash table of the keys and holders that are
// asked for. IS TRUE keeps the planner from making a join of it: lock tables are often empty
// when they are analysed, and a planner that expects one row compares each of ten thousand
// with each, for 15 seconds.
const mineHashed = "((LOCK_KEY, CLIENT_ID) IN (SELECT CAST(k AS CHAR(36)), CAST(h AS CHAR(36)) FROM ROWS FROM" +
	" (json_array_elements_text(CAST(:keys AS JSON)), json_array_elements_text(CAST(:holders AS JSON))) AS mine(k, h))) IS TRUE"

// fewHeld is true, and has the planner expect few rows, also of a large table: only then
// does it trust a hash table with their keys.
const fewHeld = "length(LOCK_KEY) BETWEEN 0 AND 36"

// fewRows is true, and has the planner expect few rows to be asked for, so that it looks
// them up one by one.
const fewRows = "length(mine.k) BETWEEN 1 AND 36"

// sqlState is what the errors of lib/pq and of pgx have in common.
type sqlState interface{ SQLState() string }

func classifyPostgres(err error) Class {
	var state sqlState
	if !errors.As(err, &state) {
		return Unknown
	}
	switch state.SQLState() {
	case "40001", // serialization_failure
		"40P01": // deadlock_detected
		return Transient
	case "55P03": // lock_not_available
		return Blocked
	case "25006": // read_only_sql_transaction
		return ReadOnly
	case "0A000": // feature_not_supported
		// A hot standby refuses SERIALIZABLE before it looks at the statement.
		if strings.Contains(err.Error(), "standby") {
			return ReadOnly
		}
	case "42P01", // undefined_table
		"42703", // undefined_column
		"3F000", // invalid_schema_name
		"42P10", // no primary key for ON CONFLICT
		"23502": // not_null_violation: the table has a column that we do not fill
		return Schema
	}
	return Unknown
}
