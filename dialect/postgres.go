package dialect

import (
	"errors"
	"strings"
)

// Postgres returns the dialect of PostgreSQL 10 and later, for lib/pq and pgx. No
// statement fails on the normal path, so none aborts a transaction or writes to the
// server's log.
func Postgres() Dialect {
	return Dialect{
		Name:      "postgres",
		Numbered:  true,
		Returning: true,
		JSONLists: true,
		Notifies:  true,

		WarnsUnreplicated: true,

		Classify: classifyPostgres,
		Outside:  "DO 'BEGIN COMMIT; END'", // PostgreSQL 10 refuses it in any case
		// A COMMIT that the server has refused has rolled the transaction back.
		IsOver: func(err error) bool { return errors.As(err, new(sqlState)) },
		fragments: fragments{
			// Not now(): that is the start of the transaction, so a lease that is
			// acquired after a wait could have expired already.
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
				"{rows}", "{lockTimeout.select}, json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36), l BIGINT)"),
			isolation: "current_setting('transaction_isolation')",
			fence:     "SELECT CAST('{fence}' AS regclass)", // to read it would take a right that nextval does not need
			token:     "nextval('{fence}')",
			notify:    notifyDeleted,
			mine:      mineHashed,
			// The columns are CHAR(36): a comparison as text would not use the index.
			items:       "(SELECT CAST(item AS CHAR(36)) FROM json_array_elements_text(CAST({list} AS JSON)) AS item)",
			itemsHashed: true,
			// FOR KEY SHARE would permit a take-over.
			guard: "SELECT 1 FROM {table} WHERE {row} AND CLIENT_ID = :holder AND {valid} FOR SHARE",
			// The rows are looked up one by one: in a SERIALIZABLE transaction a look at the whole table
			// would conflict with every acquisition.
			guardAll: `SELECT COUNT(*) FROM (SELECT 1 FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)), {table} AS held
WHERE held.REGION = :region AND held.LOCK_KEY = mine.k AND held.CLIENT_ID = mine.h AND {valid} AND ` + fewRows + `
ORDER BY held.LOCK_KEY COLLATE "C" FOR SHARE OF held) AS pinned`,
			// Two hash tables, whatever the planner's statistics say: see mineHashed.
			renewAll: `WITH free AS (SELECT LOCK_KEY FROM {table} WHERE {mine} AND {valid} AND ` + fewHeld + ` FOR NO KEY UPDATE SKIP LOCKED)
UPDATE {table} SET {prolong} WHERE REGION = :region AND (LOCK_KEY IN (SELECT LOCK_KEY FROM free)) IS TRUE RETURNING LOCK_KEY, CLIENT_ID`,
			// ONLY, because rows of two partitions may have the same ctid. The rows of a
			// partitioned table are not found, and the caller deletes them one by one.
			deleteAll: `DELETE FROM ONLY {table} WHERE ctid = ANY (ARRAY(
SELECT held.ctid FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)), ONLY {table} AS held
WHERE ` + settings + ` AND held.REGION = :region AND held.LOCK_KEY = mine.k AND held.CLIENT_ID = mine.h AND ` + fewRows + `
FOR UPDATE OF held SKIP LOCKED)) AND ` + planAnew + `
RETURNING LOCK_KEY, {deletedClient}`,
			deleteExpired: `DELETE FROM {table} WHERE REGION = :region AND (LOCK_KEY IN
(SELECT LOCK_KEY FROM {table} WHERE REGION = :region AND {expired} AND ` + fewHeld + ` FOR UPDATE SKIP LOCKED)) IS TRUE`,
			deleteClient: `DELETE FROM {table} WHERE REGION = :region AND (LOCK_KEY IN
(SELECT LOCK_KEY FROM {table} WHERE {of client} AND ` + fewHeld + ` FOR UPDATE SKIP LOCKED)) IS TRUE`,
			lockTimeout: lockTimeout{
				inSelect: "FROM " + setLockTimeout + " AS lock_timeout",
				// Longer, because many acquirers may be queued for the row.
				inUpdate: " FROM set_config('lock_timeout', '1000', true) AS lock_timeout",
				inDelete: " USING " + setLockTimeout + " AS lock_timeout, " + setAsyncCommit + " AS async_commit",
			},
			readOnly: "SELECT CAST(current_setting('transaction_read_only') = 'on' AS INTEGER)",
			version:  "SELECT version()",

			described: describedByPostgres,
		},
	}
}

// describedByPostgres reads the types of columns itself: drivers do not know how many digits of a second
// they keep. A server that keeps text as it comes (SQL_ASCII) is given UTF-8 by each client. LOCK_KEY's
// character set is that of the database, which refuses what is not in it.
const describedByPostgres = `
CASE WHEN current_setting('client_encoding') = 'UTF8' OR current_setting('server_encoding') = 'SQL_ASCII'
	OR current_setting('client_encoding') = 'SQL_ASCII' AND current_setting('server_encoding') = 'UTF8'
	THEN '' ELSE 'client_encoding is ' || current_setting('client_encoding') || ': add client_encoding=UTF8 to the DSN' END,
(SELECT CASE WHEN relkind NOT IN ('r', 'p') THEN 'it is no table, but a view or the like: name the table itself by Prefix, or by the search_path'
	ELSE COALESCE((SELECT string_agg('column ' || upper(attname) || ' is ' || format_type(c.type, c.digits), ', ')
		|| ', a lease needs TIMESTAMP(6) without time zone: change it, while no program uses the table'
		FROM (SELECT attname, CASE typtype WHEN 'd' THEN typbasetype ELSE atttypid END AS type, CASE typtype WHEN 'd' THEN typtypmod ELSE atttypmod END AS digits
			FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid WHERE attrelid = pg_class.oid AND attname IN ('created_date', 'expired_after')) AS c
		WHERE c.type <> CAST('timestamp' AS regtype) OR c.digits BETWEEN 0 AND 2), '') END
	FROM pg_class WHERE pg_class.oid = CAST('{table}' AS regclass)),
'',
(SELECT CASE WHEN typname = 'citext' THEN 'citext' WHEN to_jsonb(pg_collation) ->> 'collisdeterministic' = 'false' THEN collname ELSE '' END
	FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid LEFT JOIN pg_collation ON pg_collation.oid = attcollation
	WHERE attrelid = CAST('{table}' AS regclass) AND attname = 'lock_key')`

// setLockTimeout limits how long the statement that contains it, and the rest of the
// transaction, wait for a row, in milliseconds. It is evaluated before the row is
// locked, and saves the round trip of a SET LOCAL.
const setLockTimeout = "set_config('lock_timeout', '250', true)"

// setAsyncCommit keeps the commit of a release from waiting for the disk or a replica,
// which would be most of the cost of a release. If the server crashes, it may lose the
// most recent releases. Their rows then stay until they expire, as if the holder had
// crashed. A release cannot be lost once another client has acquired the lock: that
// commit waits for the disk, and the log is written in order.
const setAsyncCommit = "set_config('synchronous_commit', 'off', true)"

// settings is a condition, always true, that applies setLockTimeout and setAsyncCommit.
// It is evaluated once, and costs the planner less than more items in FROM.
const settings = "(SELECT " + setLockTimeout + " || " + setAsyncCommit + ") <> ''"

// planAnew is a condition, always true, that makes the server plan the statement anew for
// each execution. For a prepared statement the server would otherwise keep a plan that was
// made when the table was small and that reads all of it, although locks that come and go
// leave a hundred thousand dead rows behind until the next VACUUM. The server keeps a
// plan only if its estimated cost is not higher than that of plans for the actual values.
// A kept plan has to allow for an empty :region, for which a million rows are counted.
const planAnew = "(:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0)"

// mineHashed looks up each row of the table in a hash table of the keys and holders.
// IS TRUE keeps the planner from turning it into a join. Lock tables are often empty when
// they are analysed; a planner that expects one row would compare each of ten thousand
// rows with each other one, which takes 15 seconds.
const mineHashed = "((LOCK_KEY, CLIENT_ID) IN (SELECT CAST(k AS CHAR(36)), CAST(h AS CHAR(36)) FROM ROWS FROM" +
	" (json_array_elements_text(CAST(:keys AS JSON)), json_array_elements_text(CAST(:holders AS JSON))) AS mine(k, h))) IS TRUE"

// fewHeld is a condition, always true, that makes the planner expect few rows even of a
// large table. Only then does it choose a hash table for their keys.
const fewHeld = "length(LOCK_KEY) BETWEEN 0 AND 36"

// fewRows is a condition, always true, that makes the planner expect few items in :rows,
// so that it looks them up one by one.
const fewRows = "length(mine.k) BETWEEN 1 AND 36"

// sqlState is implemented by the errors of both lib/pq and pgx.
type sqlState interface{ SQLState() string }

func classifyPostgres(err error) Class {
	var state sqlState
	if !errors.As(err, &state) {
		return classOfOther(err)
	}
	switch state.SQLState() {
	case "40001", // serialization_failure
		"40P01": // deadlock_detected
		return Transient
	case "55P03", // lock_not_available
		"57014": // query_canceled, also by statement_timeout; the text, which would say which, is translated
		return Blocked
	case "57P01", // admin_shutdown, also by pg_terminate_backend
		"57P02", // crash_shutdown
		"57P05": // idle_session_timeout
		return Closed
	case "2D000", // invalid_transaction_termination
		"25P02": // in_failed_sql_transaction
		return Stuck
	case "25006": // read_only_sql_transaction
		return ReadOnly
	case "0A000": // feature_not_supported
		// A hot standby refuses SERIALIZABLE, and READ WRITE, which lib/pq asks for, before it reads
		// the statement.
		if strings.Contains(err.Error(), "standby") || strings.Contains(err.Error(), "during recovery") {
			return ReadOnly
		}
	case "42P01", // undefined_table
		"42703", // undefined_column
		"3F000", // invalid_schema_name
		"23502": // not_null_violation: the table has a column that sqllock does not fill
		return Schema
	case "42P10": // nothing that ON CONFLICT could mean
		return NoKey
	case "21000": // cardinality_violation: "cannot affect row a second time"
		return Repeated
	case "42501": // insufficient_privilege, for all rows, unless a policy has refused one
		if strings.Contains(err.Error(), "row-level security policy") {
			return Refused
		}
		return Unknown
	}
	switch code := state.SQLState(); code[:min(2, len(code))] {
	case "22", // data_exception
		"23",             // integrity_constraint_violation
		"27",             // triggered_data_change_violation
		"38", "39", "P0", // of a function
		"44": // with_check_option_violation
		return Refused
	}
	return Unknown
}
