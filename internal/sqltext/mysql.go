package sqltext

import (
	"errors"
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

// MySQL returns the dialect of MySQL 8 and later and of MariaDB 10.6 and later. Both
// use the same statements, except for acquisitions: see [Dialect.WithSequence].
//
// It works with all settings of the driver's clientFoundRows, parseTime, loc and
// interpolateParams: ownership is read from the row, not from a count of affected rows,
// and no dates are transferred. interpolateParams=true saves one round trip for each
// statement.
func MySQL() Dialect {
	return Dialect{
		Name:        "mysql",
		LocksLatest: true,
		Classify:    classifyMySQL,
		Outside:     "SET TRANSACTION READ WRITE",
		// A node of Galera that has lost its quorum refuses to end it (1047).
		IsOver: func(err error) bool { return classifyMySQL(err) == Transient },
		fragments: fragments{
			now:     "UTC_TIMESTAMP(6)",
			plus:    "TIMESTAMPADD(MICROSECOND, {micros}, {base})",
			between: "TIMESTAMPDIFF(MICROSECOND, {from}, {to})",
			epoch:   "'1970-01-01'",
			// The server's default collations treat 'a' and 'A' as equal.
			exact:      "CAST({text} AS BINARY)",
			latest:     "GREATEST",
			cut:        wholeSeconds,
			acquire:    onDuplicateKey,
			acquireAll: onDuplicateKeys,
			acquireRow: proposedRow,
			drawOne:    drawOneFromTable,
			draw:       drawFromTable,
			trim:       trimTable,
			fence:      "SELECT * FROM {fence} LIMIT 1",
			outcome:    "SELECT ROW_COUNT(), LAST_INSERT_ID()",
			look:       lookFirst,
			number:     "SELECT LAST_INSERT_ID()",
			items:      "({list})",
			mine:       "LOCK_KEY IN (:keys) AND CLIENT_ID IN (:holders)",
			// MariaDB does not know FOR SHARE.
			guard:          "SELECT 1 FROM {table} WHERE {row} AND CLIENT_ID = :holder AND {valid} LOCK IN SHARE MODE",
			guardAll:       asValues + "SELECT COUNT(*) FROM {table by key} WHERE {mine} AND {valid} LOCK IN SHARE MODE",
			guardByWriting: "UPDATE {table by key} SET CREATED_DATE = TIMESTAMPADD(MICROSECOND, " + leastStep + ", CREATED_DATE) " + ofRow + " AND {valid}",
			cluster:        clusterFacts,
			member:         memberFact,
			clusterEnd:     "\nLIMIT 1000", // also where sql_select_limit is less
			// The server would scan a small table, and lock each row that it scans.
			byKey:         " FORCE INDEX (PRIMARY)",
			pick:          asValues + "SELECT LOCK_KEY, CLIENT_ID FROM {table by key}{with four} WHERE {mine} AND {valid}{four} FOR UPDATE SKIP LOCKED",
			pickAll:       asValues + "SELECT COUNT(*) INTO @sqllock_picked FROM {table by key}{with four} WHERE (LOCK_KEY, CLIENT_ID) IN (:rows) AND {mine} AND {valid}{four} FOR UPDATE SKIP LOCKED",
			pickAny:       asValues + "SELECT LOCK_KEY FROM {table by key} WHERE REGION = :region AND LOCK_KEY IN (:keys) AND COALESCE(LENGTH(CLIENT_ID), 0) >= 0 FOR UPDATE SKIP LOCKED", // see deletePicked
			renewAll:      "UPDATE {table by key} SET {prolong} WHERE {mine}",
			deleteAll:     asValues + "DELETE {table} FROM {table by key} WHERE {mine}",
			pickExpired:   "SELECT LOCK_KEY FROM {table}{with four} WHERE REGION = :region AND {expired}{four} LIMIT 999 FOR UPDATE SKIP LOCKED",
			deleteExpired: deletePicked + " AND {expired}",
			pickClient:    "SELECT LOCK_KEY FROM {table} WHERE {of client} LIMIT 999 FOR UPDATE SKIP LOCKED",
			deleteClient:  deletePicked + " AND {of client}",
			// In seconds, and only on MariaDB. Oracle's MySQL cannot limit a single
			// statement; there the session's innodb_lock_wait_timeout applies.
			lockTimeout: lockTimeout{before: "/*M! SET STATEMENT innodb_lock_wait_timeout=1 FOR */ "},
			joins:       true,
			turns:       mysqlTurns,
			turnIsFree:  mysqlTurnIsFree,
			naming:      naming{write: onDuplicateName, row: "(:key, :region, :holder, {now})", add: addOnDuplicate},
			pin:         mysqlPin,
			readOnly:    "SELECT @@global.read_only",
			version:     mysqlVersion,
			session:     sessionOfMySQL,
			tables:      tablesOfMySQL,
		},
	}
}

// mysqlVersion returns the comment, too: most engines that speak MySQL's protocol name themselves in one of both. What
// VERSION() returns can be configured on TiDB, which is the only one that reads the comment with T.
const mysqlVersion = "SELECT CONCAT_WS(' ', VERSION(), @@version_comment /*T! , 'TiDB' */)"

const sessionOfMySQL = `
IF(@@character_set_client = 'utf8mb4' AND @@character_set_connection = 'utf8mb4', '', CONCAT('character_set_client is ', @@character_set_client,
	', character_set_connection is ', @@character_set_connection, ': add charset=utf8mb4 to the DSN'))`

// wholeSeconds is a second if {time} has no fraction of one. MySQL's driver for Java sends none to a
// server that it takes for an old one, as it does each MariaDB that greets its clients as 5.5.5. Such a
// row of Spring's says that its lease ends up to a second before it does. Of sqllock's own rows one in a
// million is free a second later for that.
const wholeSeconds = "1000000 * (MICROSECOND({time}) = 0)"

// asValues has MariaDB look long lists of values up in the index, as it does with short ones. From 1000 on
// it would make a table of a list, and join that: it would read a small table, and lock all of its rows.
const asValues = "/*M! SET STATEMENT in_predicate_conversion_threshold=0 FOR */ "

// deletePicked is the first part of a condition. The second one is about another column: MariaDB takes a small
// table for an index that has all it needs if there are only columns of the key, and scans it in spite of the hint.
const deletePicked = "DELETE {table} FROM {table by key} WHERE REGION = :region AND LOCK_KEY IN (:keys)"

// onDuplicateKey is the acquire statement. ON DUPLICATE KEY UPDATE takes no condition,
// so each assignment has its own. An assignment sees the new values of earlier ones
// (unless MariaDB's SIMULTANEOUS_ASSIGNMENT is set). Therefore each condition is also
// true after CLIENT_ID has been replaced, and the column that decides expiry comes last.
// VALUES() would be shorter, but MySQL 8 deprecates it and MariaDB lacks its successor.
var onDuplicateKey = map[dialect.Layout]string{
	dialect.Spring7: `{lockTimeout}INSERT INTO {table} (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
VALUES (:region, :key, :holder, {now}, {end})
ON DUPLICATE KEY UPDATE
CLIENT_ID = IF(CLIENT_ID = :holder OR {expired}, :holder, CLIENT_ID),
CREATED_DATE = IF(CLIENT_ID = :holder OR {expired}, {now}, CREATED_DATE),
EXPIRED_AFTER = IF(CLIENT_ID = :holder OR {expired}, {end}, EXPIRED_AFTER)`,
	dialect.Spring6: `{lockTimeout}INSERT INTO {table} (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE)
SELECT :region, :key, :holder, {now} FROM ` + fourColumns + `
ON DUPLICATE KEY UPDATE
CLIENT_ID = IF(CLIENT_ID = :holder OR {expired}{four}, :holder, CLIENT_ID),
CREATED_DATE = IF(CLIENT_ID = :holder OR {expired}{four}, {now}, CREATED_DATE)`,
}

// onDuplicateKeys is onDuplicateKey for several rows. Only VALUES() can refer to the
// values of each row. On a server that no longer knows VALUES(), rows are acquired one
// by one. After a SELECT of proposed.* TiDB does not know EXPIRED_AFTER.
var onDuplicateKeys = map[dialect.Layout]string{
	dialect.Spring7: `{lockTimeout}INSERT INTO {table} (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
VALUES :rows
ON DUPLICATE KEY UPDATE
CLIENT_ID = IF(CLIENT_ID = VALUES(CLIENT_ID) OR {expired}, VALUES(CLIENT_ID), CLIENT_ID),
CREATED_DATE = IF(CLIENT_ID = VALUES(CLIENT_ID) OR {expired}, VALUES(CREATED_DATE), CREATED_DATE),
EXPIRED_AFTER = IF(CLIENT_ID = VALUES(CLIENT_ID) OR {expired}, VALUES(EXPIRED_AFTER), EXPIRED_AFTER)`,
	dialect.Spring6: `{lockTimeout}INSERT INTO {table} (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE)
SELECT a, b, c, d FROM (:rows) AS proposed, ` + fourColumns + `
ON DUPLICATE KEY UPDATE
CLIENT_ID = IF(CLIENT_ID = VALUES(CLIENT_ID) OR {expired}{four}, VALUES(CLIENT_ID), CLIENT_ID),
CREATED_DATE = IF(CLIENT_ID = VALUES(CLIENT_ID) OR {expired}{four}, VALUES(CREATED_DATE), CREATED_DATE)`,
}

// proposedRow is one row of onDuplicateKeys.
var proposedRow = map[dialect.Layout]string{
	dialect.Spring7: "(:region, :key, :holder, {now}, {end})",
	dialect.Spring6: selectedRow("(:region, :key, :holder, {now})"),
}

// selectedRow is a row as a SELECT whose columns have names. Those of a list of VALUES have none on MariaDB.
func selectedRow(row string) string {
	if strings.HasPrefix(row, "SELECT ") {
		return row
	}
	return "SELECT " + strings.NewReplacer(":region", ":region AS a", ":key", ":key AS b", ":holder", ":holder AS c",
		"{now}", "{now} AS d", "{end}", "{end} AS e").Replace(strings.Trim(row, "()"))
}

// WithKey returns the dialect of a MySQL or MariaDB whose table has its unique key of LOCK_KEY and REGION otherwise:
// statements look rows up by an index that is not the primary key, unless that is "", and REGION may be its first column.
func (d Dialect) WithKey(index string, regionFirst bool) Dialect {
	if d.fragments.byKey == "" {
		return d
	}
	if index != "" {
		d.fragments.byKey = " FORCE INDEX (`" + index + "`)"
		d.fragments.pin = strings.ReplaceAll(d.fragments.pin, "'PRIMARY'", "'"+index+"'")
	}
	if regionFirst {
		d.fragments.pin = strings.Replace(d.fragments.pin, keyThenRegion, regionThenKey, 1)
	}
	return d
}

// selecting returns a text that acquires one row, or several that are each a selectedRow, with a SELECT in place of
// VALUES, and a condition, or "". Those of four columns select already.
func selecting(text, condition string) string {
	const row = "(:region, :key, :holder, {now}, {end})"
	return strings.NewReplacer(
		"VALUES "+row, "SELECT "+strings.Trim(row, "()")+" FROM DUAL"+condition,
		"VALUES :rows", "SELECT proposed.* FROM (:rows) AS proposed"+condition,
		fourColumns, fourColumns+condition,
	).Replace(text)
}

// lookFirst has the session remember whether another holder has the row, and what the row says. As a SELECT that commits by
// itself it locks nothing, whatever the isolation.
const lookFirst = "SELECT COUNT(*), MAX(COALESCE(CLIENT_ID, '')), MAX({age}), MAX({left}) INTO @sqllock_held, @sqllock_holder, @sqllock_age, @sqllock_left\n" +
	"FROM {table} WHERE {row} AND COALESCE(CLIENT_ID, '') <> :holder AND ({expired}) IS NOT TRUE"

const (
	unheld      = "@sqllock_held = 0" // of lookFirst
	lookedAt    = ", @sqllock_held, @sqllock_holder, @sqllock_age, @sqllock_left"
	onDuplicate = "\nON DUPLICATE KEY UPDATE"
)

// ifUnheld returns an acquire statement with the condition that lookFirst has found no other holder. With that the server touches no
// row at all if there is one.
func ifUnheld(acquire string) string {
	proposed, _, _ := strings.Cut(acquire, onDuplicate)
	if strings.Contains(proposed, " WHERE ") {
		return strings.Replace(acquire, onDuplicate, " AND "+unheld+onDuplicate, 1)
	}
	return selecting(acquire, " WHERE "+unheld)
}

func classifyMySQL(err error) Class {
	number, ok := numberIn(err, "Number")
	if errors.Is(err, ErrNotCommitted) {
		return Stuck
	}
	if !ok {
		return classOfOther(err)
	}
	switch number {
	case 1213, // ER_LOCK_DEADLOCK
		1020, // ER_CHECKREAD: MariaDB's innodb_snapshot_isolation
		1180, // ER_ERROR_DURING_COMMIT: certification failed in Group Replication
		3101: // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: the same
		return Transient
	case 1205, // ER_LOCK_WAIT_TIMEOUT
		1317, // ER_QUERY_INTERRUPTED: KILL QUERY
		1969, // ER_STATEMENT_TIMEOUT: max_statement_time of MariaDB
		3024, // ER_QUERY_TIMEOUT: max_execution_time of MySQL
		3572: // ER_LOCK_NOWAIT
		return Blocked
	case 1290, // ER_OPTION_PREVENTS_STATEMENT: --read-only, --super-read-only
		1792, // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
		1836: // ER_READ_ONLY_MODE
		return ReadOnly
	case 1146, // ER_NO_SUCH_TABLE
		1052, // ER_NON_UNIQ_ERROR: see fourColumns
		1054, // ER_BAD_FIELD_ERROR
		1049, // ER_BAD_DB_ERROR
		4089, // ER_NOT_SEQUENCE: it has been replaced by a table
		1364: // ER_NO_DEFAULT_FOR_FIELD: the table has a column that sqllock does not fill
		return classOfSchema(err)
	case 1176: // ER_KEY_DOES_NOT_EXITS
		return NoKey
	case 1048, 1062, 1451, 1452, 3819, 4025, // constraints; CHECK has a number of its own on each server
		1264, 1265, 1267, 1292, 1366, 1406, 1690, 3988, // a value or a character that the column cannot hold or compare
		1369, // ER_VIEW_CHECK_FAILED
		1644: // ER_SIGNAL_EXCEPTION: a trigger
		return Refused
	case 1153, // ER_NET_PACKET_TOO_LARGE: max_allowed_packet
		1390: // ER_PS_MANY_PARAM: 65535
		return TooLarge
	case 1568: // ER_CANT_CHANGE_TX_CHARACTERISTICS, before or at the begin of a transaction
		return Stuck
	case 1053, // ER_SERVER_SHUTDOWN
		1927, // ER_CONNECTION_KILLED of MariaDB
		3169, // ER_SESSION_WAS_KILLED
		4031: // ER_CLIENT_INTERACTION_TIMEOUT
		return Closed
	}
	return Unknown
}
