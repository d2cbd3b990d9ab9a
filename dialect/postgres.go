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
			acquire: upsertReturning,
			acquireAll: filled(upsertAll,
				"{row.key}", "mine.k",
				"{row.holder}", "mine.h",
				"{row.end}", "{now} + mine.l * INTERVAL '1 microsecond'",
				"{row.again}", "{now} + (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)",
				"{rows}", "{patient.select}, json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36), l BIGINT)"),
			token: "nextval('{fence}')",
			tell:  notifyGone,
			haste: ", " + notDurable,
			// The columns are CHAR(36): compared as text, no index would be used.
			items: "(SELECT CAST(item AS CHAR(36)) FROM json_array_elements_text(CAST({list} AS JSON)) AS item)",
			// FOR KEY SHARE would let a take-over pass.
			guard: "SELECT 1 FROM {table} WHERE {row} AND CLIENT_ID = :holder AND {valid} FOR SHARE",
			renewAll: `WITH free AS (SELECT LOCK_KEY FROM {table} WHERE {mine} AND {valid} FOR NO KEY UPDATE SKIP LOCKED)
UPDATE {table} SET {prolong} WHERE REGION = :region AND LOCK_KEY IN (SELECT LOCK_KEY FROM free) RETURNING CLIENT_ID`,
			deleteAll: `WITH free AS (SELECT LOCK_KEY FROM {table} WHERE {mine} FOR UPDATE SKIP LOCKED),
gone AS (DELETE FROM {table}{patient.delete}{haste} WHERE REGION = :region AND LOCK_KEY IN (SELECT LOCK_KEY FROM free)
RETURNING CLIENT_ID{tell too})
SELECT CLIENT_ID FROM gone`,
			deleteExpired: `DELETE FROM {table} WHERE REGION = :region AND LOCK_KEY IN
(SELECT LOCK_KEY FROM {table} WHERE REGION = :region AND {expired} FOR UPDATE SKIP LOCKED)`,
			patience: patience{
				inSelect: "FROM " + lockTimeout,
				inUpdate: " FROM " + lockTimeout,
				inDelete: " USING " + lockTimeout,
			},
			readOnly: "SELECT CAST(current_setting('transaction_read_only') = 'on' AS INTEGER)",
			version:  "SELECT version()",
		},
	}
}

// lockTimeout sets how long the statement that it stands in waits for a row, in
// milliseconds, until the transaction ends. It is evaluated before the row is
// locked, and saves the round trip of a SET LOCAL.
const lockTimeout = "set_config('lock_timeout', '250', true) AS patience"

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
