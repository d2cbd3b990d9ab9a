package sqltext

import "strings"

// SQLite returns the dialect of SQLite 3.42 and later. Instants are stored as text in UTC
// with milliseconds, the resolution of SQLite's clock.
//
// All transactions of SQLite are serializable, so all isolations behave alike. Configure
// a busy_timeout and WAL mode: contenders then wait for each other's commits instead of
// failing.
func SQLite() Dialect {
	return Dialect{
		Name:      "sqlite",
		Returning: true,
		JSONLists: true,
		Embedded:  true,
		Classify:  classifySQLite,
		// The driver rolls it back. A closed connection could take a database in memory with it.
		IsOver: func(error) bool { return true },
		fragments: fragments{
			now:     "datetime('now', 'subsec')",
			plus:    "datetime({base}, 'subsec', printf('%.6f seconds', {micros} / 1000000.0))",
			between: "CAST(ROUND((julianday({to}) - julianday({from})) * 86400000) * 1000 AS INTEGER)",
			epoch:   "'1970-01-01'",
			exact:   "{text}",
			latest:  "MAX",
			acquire: upsertReturning,
			acquireAll: filled(upsertAll,
				"{row.key}", "value ->> 'k'",
				"{row.holder}", "value ->> 'h'",
				"{row.now}", "{now}",
				"{row.end}", "datetime({now}, 'subsec', printf('%.6f seconds', (value ->> 'l') / 1000000.0))",
				"{row.again}", "EXCLUDED.EXPIRED_AFTER",
				"{rows}", "FROM json_each(:rows) {lockTimeout.select}"),
			drawOne: drawOneFromTable,
			token:   "0",
			fence:   fenceTable,
			draw:    drawFromTable,
			trim:    trimTable,
			items:   "(SELECT value FROM json_each({list}))",
			mine:    "(LOCK_KEY, CLIENT_ID) IN (SELECT value ->> 'k', value ->> 'h' FROM json_each(:rows))",
			// A transaction that has written excludes all other writers.
			guard: "UPDATE {table} SET CLIENT_ID = CLIENT_ID WHERE {row} AND CLIENT_ID = :holder AND {valid} RETURNING 1",
			guardAll: "UPDATE {table} SET CLIENT_ID = CLIENT_ID WHERE {mine} AND {valid}" +
				" RETURNING (SELECT COUNT(*) FROM {table} WHERE {mine} AND {valid})",
			renewAll:      "UPDATE {table} SET {prolong}{from four} WHERE {mine} AND {valid}{four} RETURNING LOCK_KEY, CLIENT_ID",
			deleteAll:     "DELETE FROM {table} WHERE {mine} RETURNING LOCK_KEY, CLIENT_ID",
			deleteExpired: deleteSome + "{with four} WHERE REGION = :region AND {expired}{four} LIMIT 1000)",
			deleteClient:  deleteSome + " WHERE {of client} LIMIT 1000)",
			// Without a WHERE, SQLite parses ON as part of a join.
			lockTimeout: lockTimeout{inSelect: "WHERE true"},
			naming:      naming{write: upsertNames("value ->> 'k'", "value ->> 'h'", "json_each(:rows)"), add: addCount},
			readOnly:    "PRAGMA query_only",
			version:     "SELECT 'SQLite ' || sqlite_version()",
			file:        "SELECT COALESCE(file, '') FROM pragma_database_list WHERE name = 'main'",
			session:     "''", // its text is Unicode
			tables:      tablesOfSQLite,
		},
	}
}

// deleteSome begins a DELETE of rows for which a condition holds. The build option that permits a LIMIT
// on DELETE itself is rare.
const deleteSome = "DELETE FROM {table} WHERE REGION = :region AND LOCK_KEY IN (SELECT LOCK_KEY FROM {table}"

func classifySQLite(err error) Class {
	code, ok := numberIn(err, sqliteCode)
	if !ok {
		return classOfOther(err)
	}
	const primary = 0xff // the low byte; the other bytes hold details
	switch code & primary {
	case 5, // SQLITE_BUSY
		6: // SQLITE_LOCKED
		return Transient
	case 8: // SQLITE_READONLY
		return ReadOnly
	case 1: // SQLITE_ERROR: only the text distinguishes these
		if text := err.Error(); strings.Contains(text, "no such table") ||
			strings.Contains(text, "no such column") || strings.Contains(text, "ambiguous column name") || // see fourColumns
			strings.Contains(text, "has no column") {
			return classOfSchema(err)
		} else if strings.Contains(text, "ON CONFLICT clause does not match") {
			return NoKey
		}
	case 19: // SQLITE_CONSTRAINT
		if strings.Contains(err.Error(), "NOT NULL") {
			return classOfSchema(err)
		}
		return Refused
	}
	return Unknown
}
