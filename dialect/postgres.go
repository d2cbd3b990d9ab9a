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
		Name:         "postgres",
		Numbered:     true,
		ReturnsOwner: true,
		Classify:     classifyPostgres,
		fragments: fragments{
			// Not now(): that is the start of the transaction, so a lease
			// taken after a wait could be born expired.
			now:      "(clock_timestamp() AT TIME ZONE 'UTC')",
			plus:     "({base} + CAST({micros} AS BIGINT) * INTERVAL '1 microsecond')",
			between:  "CAST(EXTRACT(EPOCH FROM ({to} - {from})) * 1000000 AS BIGINT)",
			epoch:    "TIMESTAMP '1970-01-01'",
			exact:    "{text}",
			acquire:  upsertReturning,
			readOnly: "SELECT CAST(current_setting('transaction_read_only') = 'on' AS INTEGER)",
			version:  "SELECT version()",
		},
	}
}

// sqlState is what the errors of lib/pq and of pgx have in common.
type sqlState interface{ SQLState() string }

func classifyPostgres(err error) Class {
	var state sqlState
	if !errors.As(err, &state) {
		return Unknown
	}
	switch state.SQLState() {
	case "40001", // serialization_failure
		"40P01", // deadlock_detected
		"55P03": // lock_not_available
		return Transient
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
