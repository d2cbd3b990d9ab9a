package sqltext

// naming are the texts about the table of names that are not the same everywhere.
type naming struct {
	write, row string
	add        string
	among      string // the condition that a row has one of :keys as its ID; "" where items will do
}

// dayAgo is, in µs, how long a name is kept that is not written again.
const dayAgo = "-86400000000"

// runsAgo is, in µs, how long what is known of the runs of a job is kept: 90 days. A job may run once in a quarter.
const runsAgo = "-7776000000000"

// ofRuns is the condition for rows about runs, which the primary key finds: SQLite's LIKE does not use it. No other ID begins as
// these do. A colon would be that of a parameter.
const ofRuns = "(ID >= 'run' AND ID < 'ruo' OR ID >= 'skip' AND ID < 'skiq')"

// waitsLast is, in µs, how long it counts what a process waits for. It writes that several times as often.
const waitsLast = "-30000000"

// upsertNames is the statement that writes names, of databases that know ON CONFLICT. The rows come in the order
// of their IDs, so that processes that write the same ones cannot deadlock.
func upsertNames(id, name, rows string) string {
	return "INSERT INTO {name} (ID, REGION, NAME, SEEN)\nSELECT " + id + ", :region, " + name + ", {now} FROM " + rows + " WHERE true" +
		"\nON CONFLICT (ID, REGION) DO UPDATE SET NAME = EXCLUDED.NAME, SEEN = EXCLUDED.SEEN"
}

// onDuplicateName is upsertNames for MySQL and MariaDB: see onDuplicateKeys for VALUES().
const onDuplicateName = "{lockTimeout}INSERT INTO {name} (ID, REGION, NAME, SEEN)\nVALUES :rows" +
	"\nON DUPLICATE KEY UPDATE NAME = VALUES(NAME), SEEN = VALUES(SEEN)"

// addCount is the statement that adds to a number in the table of names, in one step, of databases that know ON CONFLICT.
const addCount = "INSERT INTO {name} AS known (ID, REGION, NAME, SEEN)\nVALUES (:key, :region, :holder, {now})" +
	"\nON CONFLICT (ID, REGION) DO UPDATE SET NAME = CAST(CAST(known.NAME AS BIGINT) + CAST(EXCLUDED.NAME AS BIGINT) AS VARCHAR(20)), SEEN = EXCLUDED.SEEN"

// addOnDuplicate is addCount for MySQL and MariaDB.
const addOnDuplicate = "{lockTimeout}INSERT INTO {name} (ID, REGION, NAME, SEEN)\nVALUES (:key, :region, :holder, {now})" +
	"\nON DUPLICATE KEY UPDATE NAME = CAST(CAST(NAME AS UNSIGNED) + CAST(VALUES(NAME) AS UNSIGNED) AS CHAR(20)), SEEN = VALUES(SEEN)"
