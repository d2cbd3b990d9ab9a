package sqltext

// The texts say which transaction has a row locked: a text that names its session, and for how many µs it has been
// open, or -1 if the server does not tell this user. They return the oldest one, if there is any.

// On PostgreSQL a row has the number of the transaction that has locked it, unless several have. Each transaction
// that has a number has a lock on that, also one that was prepared, which has no session.
const postgresPin = `SELECT COALESCE('session ' || l.pid, 'a prepared transaction')
	|| COALESCE(' (' || NULLIF(CONCAT_WS(', ', a.usename, NULLIF(a.application_name, ''), host(a.client_addr)), '') || ')', '') AS session,
	COALESCE(CAST(EXTRACT(EPOCH FROM clock_timestamp() - a.xact_start) * 1000000 AS BIGINT), -1) AS since
FROM {table} AS held JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.transactionid = held.xmax
LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE held.REGION = :region AND held.LOCK_KEY = :key ORDER BY since DESC LIMIT 1`

// MySQL lists all locks. MariaDB lists those that others wait for, as a process does that tries to acquire. Both
// ask for the right PROCESS, MySQL also for SELECT on performance_schema. A transaction's start is in the zone of
// the server's system. CONVERT_TZ knows that one, and the session's, also where no zones have been loaded. See
// [Dialect.WithKey] for another index than PRIMARY.
const mysqlPin = `SELECT CONCAT('session ', x.trx_mysql_thread_id, COALESCE(CONCAT(' (', NULLIF(CONCAT_WS(', ', p.USER, p.HOST), ''), ')'), '')) AS session,
	TIMESTAMPDIFF(MICROSECOND, x.trx_started, CONVERT_TZ(NOW(6), @@time_zone, 'SYSTEM')) AS since
FROM /*M! information_schema.INNODB_LOCK_WAITS AS w JOIN information_schema.INNODB_LOCKS AS l ON l.lock_id = w.blocking_lock_id
JOIN information_schema.INNODB_TRX AS x ON x.trx_id = w.blocking_trx_id */
/*!80000 performance_schema.data_locks AS l JOIN information_schema.INNODB_TRX AS x ON x.trx_id = l.ENGINE_TRANSACTION_ID */
LEFT JOIN information_schema.PROCESSLIST AS p ON p.ID = x.trx_mysql_thread_id
WHERE x.trx_mysql_thread_id <> CONNECTION_ID() AND l.LOCK_TYPE = 'RECORD'
AND LOCATE(CONCAT('''', ` + keyThenRegion + `, ''','), ` + mysqlLockData + `) = 1
/*M! AND NOT (x.trx_requested_lock_id <=> l.lock_id) AND l.lock_index = 'PRIMARY' AND l.lock_table LIKE '%{unqualified}%' */
/*!80000 AND l.INDEX_NAME = 'PRIMARY' AND l.LOCK_STATUS = 'GRANTED' AND LOWER(l.OBJECT_NAME) = '{unqualified}' */
ORDER BY since DESC LIMIT 1`

// The columns of the index stand first in LOCK_DATA, in their order, which tells a key from a region of the same name.
const (
	keyThenRegion = ":key, ''',''', :region"
	regionThenKey = ":region, ''',''', :key"
)

// mysqlLockData is the columns of the index, and then others of the primary key. Those of CHAR end in spaces.
const mysqlLockData = "REGEXP_REPLACE(CONCAT(l.LOCK_DATA, ','), ' +''', '''')"
