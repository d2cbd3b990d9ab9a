package sqltext

import (
	"errors"
	"strings"
)

// Postgres returns the dialect of PostgreSQL 11 and later, for lib/pq and pgx. No
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
			now:  "(clock_timestamp() AT TIME ZONE 'UTC')",
			plus: "({base} + CAST({micros} AS BIGINT) * INTERVAL '1 microsecond')",
			// An infinite instant cannot be subtracted. This is 285 years from now for it.
			between: "CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM {to}) - EXTRACT(EPOCH FROM {from}), -9e9), 9e9) * 1000000 AS BIGINT)",
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
			anew:      " AND " + planAnew,
			ofRegion:  "REGION = :region",
			peekAll: "SELECT held.* FROM json_array_elements_text(CAST(:keys AS JSON)) AS mine(k), LATERAL (SELECT " + rowColumns +
				" FROM {table} WHERE {of region} AND LOCK_KEY = CAST(mine.k AS CHAR(36)){newest} OFFSET 0) AS held{where anew}",
			heldAll: "SELECT held.* FROM " + eachOfMine("LOCK_KEY, CLIENT_ID", "{table}", " AND {valid}{newest} OFFSET 0") + "{where anew}",
			// FOR KEY SHARE would permit a take-over.
			// It runs on a session of the user's, whatever the others run on.
			guard: "SELECT 1 FROM {table} WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND {valid} AND " + planAnew + " FOR SHARE",
			// :rows are in the order of their keys, and so are the locks.
			guardAll: "SELECT COUNT(*) FROM " + strings.Replace(eachOfMine("1", "{table}", " AND {valid} FOR SHARE"), "{of region}", "REGION = :region", 1) + " WHERE " + planAnew,
			renewAll: "WITH picked AS (SELECT held.* FROM " + eachOfMine("ctid AS place, REGION, LOCK_KEY", "{table}", " AND {valid}{newest} FOR NO KEY UPDATE SKIP LOCKED") + "{where anew})\n" +
				"UPDATE {table} SET {prolong}{from four} WHERE " + arePicked + "{four} RETURNING LOCK_KEY, CLIENT_ID",
			// ONLY, because rows of two partitions may have the same ctid. The rows of a
			// partitioned table are not found, and the caller deletes them one by one.
			deleteAll: "DELETE FROM ONLY {table} WHERE ctid = ANY (ARRAY(\n" +
				"SELECT held.ctid FROM " + eachOfMine("ctid", "ONLY {table}", "{newest} FOR UPDATE SKIP LOCKED") + " WHERE " + settings + "{anew}))\n" +
				"RETURNING LOCK_KEY, {deletedClient}",
			deleteExpired: "WITH picked AS (SELECT ctid AS place, REGION, LOCK_KEY FROM {table}{with four} WHERE REGION = :region AND {expired}{four} LIMIT 1000 FOR UPDATE SKIP LOCKED)\n" +
				"DELETE FROM {table} WHERE " + arePicked,
			deleteClient: "WITH picked AS (SELECT ctid AS place, REGION, LOCK_KEY FROM {table} WHERE {of client} LIMIT 1000 FOR UPDATE SKIP LOCKED)\n" +
				"DELETE FROM {table} WHERE " + arePicked,
			lockTimeout: lockTimeout{
				inSelect: "FROM " + setLockTimeout + " AS lock_timeout",
				// Longer, because many acquirers may be queued for the row.
				inUpdate: " FROM set_config('lock_timeout', '1000', true) AS lock_timeout",
				inDelete: " USING " + setLockTimeout + " AS lock_timeout, " + setAsyncCommit + " AS async_commit",
			},
			turns: postgresTurns, turnIsFree: postgresTurnIsFree,
			naming: naming{
				write: upsertNames("mine.k", "mine.h", "json_to_recordset(CAST(:rows AS JSON)) AS mine(k TEXT, h TEXT)"),
				add:   addCount,
				among: "ID = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS JSON))))",
			},
			pin: postgresPin,
			// current_setting is STABLE: Pgpool-II sends a query of such functions alone to a standby.
			readOnly: "SELECT CAST(current_setting('transaction_read_only') = 'on' AND clock_timestamp() IS NOT NULL AS INTEGER)",
			version:  postgresVersion,

			session: sessionOfPostgres,
			tables:  tablesOfPostgres,
		},
	}
}

// postgresVersion names Aurora DSQL, whose version() is that of a PostgreSQL, by a view that only it has.
const postgresVersion = "SELECT version() || CASE WHEN EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace" +
	" WHERE nspname = 'sys' AND relname = 'iam_pg_role_mappings') THEN ' Aurora DSQL' ELSE '' END"

// WithoutScans returns the dialect of a PostgreSQL for sessions whose enable_seqscan is off. Statements for
// rows that are named then may keep their plans, because each of them looks them up in the index.
//
// While an old snapshot keeps all versions of a row, a look-up by equality passes those that are dead before it comes to the
// one that counts. In the index they stand in the order of their places in the table, so from the end the newest comes first.
// The condition on REGION is no equality, so that the planner has a reason to read backward. And rows can be parked:
// elsewhere it might look them up by reading the table, which would give acquisitions of other keys serialization failures.
func (d Dialect) WithoutScans() Dialect {
	f := d.fragments
	f.anew, f.ofRegion, f.newest = "", "REGION >= :region AND REGION <= :region", " ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1"
	f.take, f.takeAll, f.park, f.parkAll = take, takeAll, park, parkAll
	d.fragments = f
	return d
}

// WithoutParking undoes for a table what [Dialect.WithoutScans] does besides: look-ups from the end of the index, and parked
// rows. It is for a server before PostgreSQL 12, whose index does not have the newest version at its end, and which cannot join by
// place without reading the table; and for a partitioned table, whose rows no statement for many deletes.
func (d Dialect) WithoutParking() Dialect {
	f := d.fragments
	f.ofRegion, f.newest = "REGION = :region", ""
	f.take, f.takeAll, f.park, f.parkAll = "", "", "", ""
	d.fragments = f
	return d
}

// Parks reports whether the rows of busy keys can be parked.
func (d Dialect) Parks() bool { return d.fragments.park != "" }

// A row that is parked has expired a day ago, so that Spring, which goes by the clocks of its hosts, finds it free at once, too.
//
// Rows of two partitions may have the same ctid, so their keys are compared, too. IS TRUE keeps the planner from using
// an index for that. The settings are conditions on the one row that is found: the server evaluates them before it locks it, and
// each further node of a plan costs some microseconds.
const (
	take = "UPDATE {table} AS held SET CLIENT_ID = :holder, CREATED_DATE = {now}, EXPIRED_AFTER = {end}\n" +
		"WHERE ctid = (SELECT ctid FROM {table} WHERE {of region} AND LOCK_KEY = :key{newest}) AND (REGION = :region AND LOCK_KEY = :key) IS TRUE\n" +
		"AND (CLIENT_ID = :holder OR {held.expired}) AND " + setLockTimeout + " <> ''\n" +
		"RETURNING {token}"
	takeAll = "UPDATE {table} AS held SET CLIENT_ID = mine.h, CREATED_DATE = {now}, EXPIRED_AFTER = {now} + mine.l * INTERVAL '1 microsecond'\n" +
		"{lockTimeout.select}, (SELECT k, h, l, (SELECT ctid FROM {table} WHERE {of region} AND LOCK_KEY = k{newest}) AS place\n" +
		"FROM json_to_recordset(CAST(:rows AS JSON)) AS proposed(k CHAR(36), h CHAR(36), l BIGINT) OFFSET 0) AS mine\n" +
		"WHERE held.ctid = mine.place AND (REGION = :region AND LOCK_KEY = mine.k) IS TRUE AND (CLIENT_ID = mine.h OR {held.expired})\n" +
		"RETURNING LOCK_KEY, {token}"
	park = "UPDATE {table} SET CLIENT_ID = :next, EXPIRED_AFTER = {now} - INTERVAL '1 day'\n" +
		"WHERE ctid = (SELECT ctid FROM {table} WHERE {of region} AND LOCK_KEY = :key{newest}) AND (REGION = :region AND LOCK_KEY = :key) IS TRUE\n" +
		"AND CLIENT_ID = :holder AND " + setLockTimeout + " <> '' AND " + setAsyncCommit + " <> ''{notify}"
)

var parkAll = "UPDATE ONLY {table} SET CLIENT_ID = :next, EXPIRED_AFTER = {now} - INTERVAL '1 day' WHERE ctid = ANY (ARRAY(\n" +
	"SELECT held.ctid FROM " + eachOfMine("ctid", "ONLY {table}", "{newest} FOR NO KEY UPDATE SKIP LOCKED") + " WHERE " + settings + "))\n" +
	"RETURNING LOCK_KEY, {deletedClient}"

// sessionOfPostgres asks for the encoding. A server that keeps text as it comes (SQL_ASCII) is given UTF-8 by each
// client. LOCK_KEY's character set is that of the database, which refuses what is not in it.
const sessionOfPostgres = `
CASE WHEN current_setting('client_encoding') = 'UTF8' OR current_setting('server_encoding') = 'SQL_ASCII'
	OR current_setting('client_encoding') = 'SQL_ASCII' AND current_setting('server_encoding') = 'UTF8'
	THEN '' ELSE 'client_encoding is ' || current_setting('client_encoding') || ': add client_encoding=UTF8 to the DSN' END`

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
// made when the table was small and that reads all of it, although it has grown meanwhile, or locks
// that come and go have left a hundred thousand dead rows behind until the next VACUUM. It costs 20 µs:
// see [Dialect.WithoutScans]. The server keeps a
// plan only if its estimated cost is not higher than that of plans for the actual values.
// A kept plan has to allow for an empty :region, for which a million rows are counted.
const planAnew = "(:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0)"

// eachOfMine is the rows of a table that carry one of the keys and holders of :rows, each looked up
// by itself, in the order of :rows. OFFSET or FOR, which end the text of one row, keep the planner from
// making a join of it. Lock tables are often empty when they are analysed; a planner that
// expects one row would read the whole table, or compare each row with each key.
func eachOfMine(columns, table, end string) string {
	return "json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),\n" +
		"LATERAL (SELECT " + columns + " FROM " + table + " WHERE {of region} AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h" + end + ") AS held"
}

// arePicked is the condition that a row is in picked, where it was looked up and locked. Rows of two partitions
// may have the same ctid, so their keys are compared, too. IS TRUE makes that a hash table, and keeps the planner from using an index for it.
const arePicked = "ctid = ANY (ARRAY(SELECT place FROM picked)) AND ((REGION, LOCK_KEY) IN (SELECT REGION, LOCK_KEY FROM picked)) IS TRUE"

// sqlState is implemented by the errors of both lib/pq and pgx.
type sqlState interface{ SQLState() string }

// isOwnKey reports whether a duplicate is one of a primary key of ours. ON CONFLICT has not noticed the other row:
// while REINDEX CONCURRENTLY, or another index on these columns, is under way, the server looks for duplicates in
// an index that ON CONFLICT does not know yet. The columns stand in the detail, whatever its language.
func isOwnKey(err error) bool {
	return anyIn(err, func(err error) bool {
		detail := fieldOf(err, "Detail")
		return strings.Contains(detail, "(lock_key, region)=") || strings.Contains(detail, "(region, lock_key)=") || strings.Contains(detail, "(id, region)=")
	})
}

// isOldPlan reports whether the table has changed since a driver has prepared the statement: "cached plan must not
// change result type", in whatever language. The server has not run it, and the driver prepares it once more.
func isOldPlan(err error) bool {
	return anyIn(err, func(err error) bool { return fieldOf(err, "Routine") == "RevalidateCachedQuery" })
}

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
		"57P05", // idle_session_timeout
		"25P03", // idle_in_transaction_session_timeout
		"25P04": // transaction_timeout
		return Closed
	case "23505": // unique_violation
		if isOwnKey(err) {
			return Transient
		}
		return Refused
	case "2D000", // invalid_transaction_termination
		"25P02": // in_failed_sql_transaction
		return Stuck
	case "53200": // out_of_memory: "out of shared memory", see max_locks_per_transaction
		return Exhausted
	case "25006": // read_only_sql_transaction
		return ReadOnly
	case "0A000": // feature_not_supported
		// A hot standby refuses SERIALIZABLE, and READ WRITE, which lib/pq asks for, before it reads
		// the statement.
		if strings.Contains(err.Error(), "standby") || strings.Contains(err.Error(), "during recovery") {
			return ReadOnly
		}
		if isOldPlan(err) {
			return OldPlan
		}
	case "42P01", // undefined_table
		"42703", // undefined_column
		"42702", // ambiguous_column: see fourColumns
		"3F000", // invalid_schema_name
		"23502": // not_null_violation: the table has a column that sqllock does not fill
		return classOfSchema(err)
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
