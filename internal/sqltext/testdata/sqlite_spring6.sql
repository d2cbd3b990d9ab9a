-- Acquire
INSERT INTO INT_LOCK AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE)
SELECT :region, :key, :holder, datetime('now', 'subsec') WHERE true
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = datetime('now', 'subsec')
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR datetime(held.CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) < datetime('now', 'subsec')
RETURNING 0;

-- AcquireAll
INSERT INTO INT_LOCK AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE)
SELECT :region, value ->> 'k', value ->> 'h', datetime('now', 'subsec') FROM json_each(:rows) WHERE true
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = datetime('now', 'subsec')
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR datetime(held.CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) < datetime('now', 'subsec')
RETURNING LOCK_KEY, 0;

-- AcquireRow
;

-- Isolation
;

-- Outcome
;

-- Look
;

-- AcquireUnheld
;

-- DrawUnheld
;

-- OutcomeUnheld
;

-- Number
;

-- PeekAll
SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), CAST(ROUND((julianday(datetime('now', 'subsec')) - julianday(CREATED_DATE)) * 86400000) * 1000 AS INTEGER), CAST(ROUND((julianday(datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0))) - julianday(datetime('now', 'subsec'))) * 86400000) * 1000 AS INTEGER) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY IN (SELECT value FROM json_each(:keys));

-- PeekCurrent
;

-- BeforeCurrent
;

-- AfterCurrent
;

-- DrawOne
INSERT INTO INT_LOCK_FENCE (ID) VALUES (NULL);

-- Draw
INSERT INTO INT_LOCK_FENCE (ID) SELECT NULL FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder;

-- Trim
DELETE FROM INT_LOCK_FENCE WHERE ID < :token;

-- Peek
SELECT COALESCE(CLIENT_ID, ''), CAST(ROUND((julianday(datetime('now', 'subsec')) - julianday(CREATED_DATE)) * 86400000) * 1000 AS INTEGER), CAST(ROUND((julianday(datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0))) - julianday(datetime('now', 'subsec'))) * 86400000) * 1000 AS INTEGER) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key;

-- List
SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), CAST(ROUND((julianday(datetime('now', 'subsec')) - julianday(CREATED_DATE)) * 86400000) * 1000 AS INTEGER), CAST(ROUND((julianday(datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0))) - julianday(datetime('now', 'subsec'))) * 86400000) * 1000 AS INTEGER) FROM INT_LOCK ORDER BY REGION, LOCK_KEY;

-- ListFirst
SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), CAST(ROUND((julianday(datetime('now', 'subsec')) - julianday(CREATED_DATE)) * 86400000) * 1000 AS INTEGER), CAST(ROUND((julianday(datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0))) - julianday(datetime('now', 'subsec'))) * 86400000) * 1000 AS INTEGER) FROM INT_LOCK ORDER BY CASE WHEN datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) < datetime('now', 'subsec') THEN 1 ELSE 0 END, CREATED_DATE, REGION, LOCK_KEY LIMIT :limit;

-- Count
SELECT COUNT(CASE state WHEN 0 THEN 1 END), COUNT(CASE state WHEN 1 THEN 1 END), COUNT(CASE state WHEN 2 THEN 1 END), COUNT(CASE state WHEN 3 THEN 1 END) FROM (SELECT CASE WHEN RTRIM(CLIENT_ID) LIKE '%-k__________' THEN CASE WHEN datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) < datetime('now', 'subsec') THEN 2 ELSE 1 END WHEN datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) < datetime('now', 'subsec') THEN 3 ELSE 0 END AS state FROM INT_LOCK WHERE REGION = :region) AS counted;

-- Held
SELECT COUNT(*) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) >= datetime('now', 'subsec');

-- Renew
UPDATE INT_LOCK SET CREATED_DATE = datetime(datetime('now', 'subsec'), 'subsec', printf('%.6f seconds', :shift / 1000000.0)) FROM (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) >= datetime('now', 'subsec') AND EXPIRED_AFTER IS NULL;

-- Guard
UPDATE INT_LOCK SET CLIENT_ID = CLIENT_ID WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) >= datetime('now', 'subsec') RETURNING 1;

-- GuardByWriting
;

-- GuardAll
UPDATE INT_LOCK SET CLIENT_ID = CLIENT_ID WHERE REGION = :region AND (LOCK_KEY, CLIENT_ID) IN (SELECT value ->> 'k', value ->> 'h' FROM json_each(:rows)) AND datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) >= datetime('now', 'subsec') RETURNING (SELECT COUNT(*) FROM INT_LOCK WHERE REGION = :region AND (LOCK_KEY, CLIENT_ID) IN (SELECT value ->> 'k', value ->> 'h' FROM json_each(:rows)) AND datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) >= datetime('now', 'subsec'));

-- GuardAllByWriting
;

-- Pick
;

-- PickAll
;

-- PickRow
;

-- IfAll
;

-- AllPicked
;

-- PickAny
;

-- RenewAll
UPDATE INT_LOCK SET CREATED_DATE = datetime(datetime('now', 'subsec'), 'subsec', printf('%.6f seconds', :shift / 1000000.0)) FROM (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE REGION = :region AND (LOCK_KEY, CLIENT_ID) IN (SELECT value ->> 'k', value ->> 'h' FROM json_each(:rows)) AND datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) >= datetime('now', 'subsec') AND EXPIRED_AFTER IS NULL RETURNING LOCK_KEY, CLIENT_ID;

-- HeldAll
SELECT LOCK_KEY, CLIENT_ID FROM INT_LOCK WHERE REGION = :region AND (LOCK_KEY, CLIENT_ID) IN (SELECT value ->> 'k', value ->> 'h' FROM json_each(:rows)) AND datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) >= datetime('now', 'subsec');

-- Keep
UPDATE INT_LOCK SET CLIENT_ID = :next, CREATED_DATE = datetime(datetime('now', 'subsec'), 'subsec', printf('%.6f seconds', :shift / 1000000.0)) FROM (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) >= datetime('now', 'subsec') AND EXPIRED_AFTER IS NULL;

-- KeepAll
UPDATE INT_LOCK SET CLIENT_ID = :next, CREATED_DATE = datetime(datetime('now', 'subsec'), 'subsec', printf('%.6f seconds', :shift / 1000000.0)) FROM (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE REGION = :region AND (LOCK_KEY, CLIENT_ID) IN (SELECT value ->> 'k', value ->> 'h' FROM json_each(:rows)) AND datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) >= datetime('now', 'subsec') AND EXPIRED_AFTER IS NULL RETURNING LOCK_KEY, CLIENT_ID;

-- Take
;

-- TakeAll
;

-- Park
;

-- ParkAll
;

-- Delete
DELETE FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder;

-- DeleteAll
DELETE FROM INT_LOCK WHERE REGION = :region AND (LOCK_KEY, CLIENT_ID) IN (SELECT value ->> 'k', value ->> 'h' FROM json_each(:rows)) RETURNING LOCK_KEY, CLIENT_ID;

-- PickClient
;

-- DeleteClient
DELETE FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY IN (SELECT LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND SUBSTR(CLIENT_ID, 1, LENGTH(:client)) = :client AND LENGTH(RTRIM(CLIENT_ID)) = LENGTH(:client) + 11 LIMIT 1000);

-- CountClient
SELECT COUNT(*) FROM INT_LOCK WHERE REGION = :region AND SUBSTR(CLIENT_ID, 1, LENGTH(:client)) = :client AND LENGTH(RTRIM(CLIENT_ID)) = LENGTH(:client) + 11;

-- PickExpired
;

-- DeleteExpired
DELETE FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY IN (SELECT LOCK_KEY FROM INT_LOCK, (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE REGION = :region AND datetime(CREATED_DATE, 'subsec', printf('%.6f seconds', :ttl / 1000000.0)) < datetime('now', 'subsec') AND EXPIRED_AFTER IS NULL LIMIT 1000);

-- WriteNames
INSERT INTO INT_LOCK_NAME (ID, REGION, NAME, SEEN)
SELECT value ->> 'k', :region, value ->> 'h', datetime('now', 'subsec') FROM json_each(:rows) WHERE true
ON CONFLICT (ID, REGION) DO UPDATE SET NAME = EXCLUDED.NAME, SEEN = EXCLUDED.SEEN;

-- WriteName
;

-- Names
SELECT REGION, ID, NAME FROM INT_LOCK_NAME WHERE ID IN (SELECT value FROM json_each(:keys));

-- Runs
SELECT REGION, ID, NAME, CAST(ROUND((julianday(datetime('now', 'subsec')) - julianday(SEEN)) * 86400000) * 1000 AS INTEGER) FROM INT_LOCK_NAME WHERE (ID >= 'run' AND ID < 'ruo' OR ID >= 'skip' AND ID < 'skiq') LIMIT 10000;

-- RunsOf
SELECT REGION, ID, NAME, CAST(ROUND((julianday(datetime('now', 'subsec')) - julianday(SEEN)) * 86400000) * 1000 AS INTEGER) FROM INT_LOCK_NAME WHERE ID IN (SELECT value FROM json_each(:keys));

-- ForgetRuns
DELETE FROM INT_LOCK_NAME WHERE REGION = :region AND ID IN (SELECT value FROM json_each(:keys));

-- AddToName
INSERT INTO INT_LOCK_NAME AS known (ID, REGION, NAME, SEEN)
VALUES (:key, :region, :holder, datetime('now', 'subsec'))
ON CONFLICT (ID, REGION) DO UPDATE SET NAME = CAST(CAST(known.NAME AS BIGINT) + CAST(EXCLUDED.NAME AS BIGINT) AS VARCHAR(20)), SEEN = EXCLUDED.SEEN;

-- Waits
SELECT REGION, ID, NAME, CAST(ROUND((julianday(datetime('now', 'subsec')) - julianday(SEEN)) * 86400000) * 1000 AS INTEGER) FROM INT_LOCK_NAME WHERE ID LIKE 'wait%' AND SEEN > datetime(datetime('now', 'subsec'), 'subsec', printf('%.6f seconds', -30000000 / 1000000.0)) LIMIT 1000;

-- OldNames
SELECT ID FROM INT_LOCK_NAME WHERE SEEN < datetime(datetime('now', 'subsec'), 'subsec', printf('%.6f seconds', -86400000000 / 1000000.0)) AND NOT ((ID >= 'run' AND ID < 'ruo' OR ID >= 'skip' AND ID < 'skiq') AND SEEN >= datetime(datetime('now', 'subsec'), 'subsec', printf('%.6f seconds', -7776000000000 / 1000000.0))) LIMIT 500;

-- DeleteNames
DELETE FROM INT_LOCK_NAME WHERE ID IN (SELECT value FROM json_each(:keys)) AND SEEN < datetime(datetime('now', 'subsec'), 'subsec', printf('%.6f seconds', -86400000000 / 1000000.0)) AND NOT ((ID >= 'run' AND ID < 'ruo' OR ID >= 'skip' AND ID < 'skiq') AND SEEN >= datetime(datetime('now', 'subsec'), 'subsec', printf('%.6f seconds', -7776000000000 / 1000000.0)));

-- Columns
SELECT server.version, '', held.* FROM (SELECT 'SQLite ' || sqlite_version() AS version) AS server LEFT JOIN INT_LOCK AS held ON 1 = 0;

-- Tables
SELECT 'LOCK' AS relation, 'flaw' AS fact, 'is ' || CASE WHEN schema = 'temp' THEN 'temporary, so that no other connection sees it' ELSE 'a ' || type END AS name,
	'' AS text, 'other' AS flags, '' AS more, 'name the table itself by Prefix' AS cure
	FROM (SELECT schema, type FROM pragma_table_list('INT_LOCK') WHERE '' IN ('', schema) ORDER BY schema <> 'temp' LIMIT 1) WHERE schema = 'temp' OR type IN ('view', 'virtual')
UNION ALL SELECT 'LOCK', 'column', upper(name), type,
	CASE WHEN "notnull" OR pk AND type = 'INTEGER' THEN '' ELSE 'null ' END || CASE WHEN pk AND type = 'INTEGER' THEN 'own ' ELSE '' END || CASE WHEN dflt_value IS NOT NULL OR hidden > 1 THEN 'default ' ELSE '' END
	|| CASE WHEN upper(name) IN ('LOCK_KEY', 'REGION', 'CLIENT_ID') AND type <> '' AND (instr(upper(type), 'INT') OR NOT (instr(upper(type), 'CHAR') OR instr(upper(type), 'CLOB') OR instr(upper(type), 'TEXT') OR instr(upper(type), 'BLOB')))
		AND NOT (upper(type) = 'ANY' AND strict) THEN CASE WHEN upper(name) = 'LOCK_KEY' AND NOT strict THEN 'uuids' ELSE 'alters' END ELSE '' END, '', ''
	FROM pragma_table_xinfo('INT_LOCK', NULLIF('', '')),
		(SELECT strict FROM pragma_table_list('INT_LOCK') WHERE '' IN ('', schema) ORDER BY schema <> 'temp' LIMIT 1)
UNION ALL SELECT 'LOCK', 'key', indexes.name, COALESCE(upper(columns.name), '(an expression)'), CASE WHEN partial THEN 'is partial' ELSE '' END, CAST(seqno + 1 AS TEXT),
	CASE origin WHEN 'c' THEN 'DROP INDEX ' || indexes.name ELSE '' END
	FROM pragma_index_list('INT_LOCK', NULLIF('', '')) AS indexes, pragma_index_xinfo(indexes.name, NULLIF('', '')) AS columns WHERE "unique" AND "key"
UNION ALL SELECT DISTINCT 'LOCK', 'collation', upper(columns.name), coll, CASE coll WHEN 'BINARY' THEN 'fixed' ELSE 'merges' END, '', ''
	FROM pragma_index_list('INT_LOCK', NULLIF('', '')) AS indexes, pragma_index_xinfo(indexes.name, NULLIF('', '')) AS columns
	WHERE "unique" AND "key" AND upper(columns.name) IN ('LOCK_KEY', 'REGION')
UNION ALL SELECT 'FENCE', 'flaw', 'has no AUTOINCREMENT, so that a fencing token may be given out again', '', '', '',
	'CREATE TABLE INT_LOCK_FENCE_NEW (ID INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO INT_LOCK_FENCE_NEW SELECT MAX(ID) FROM INT_LOCK_FENCE; DROP TABLE INT_LOCK_FENCE; ALTER TABLE INT_LOCK_FENCE_NEW RENAME TO INT_LOCK_FENCE'
	FROM sqlite_master WHERE name = 'INT_LOCK_FENCE' COLLATE NOCASE AND type = 'table' AND sql NOT LIKE '%AUTOINCREMENT%'
UNION ALL SELECT 'FENCE', 'flaw', 'is in the schema ' || fences || ', and INT_LOCK in ' || locks || ', so that a crash may keep the one and lose the other', '', '', '',
	'CREATE TABLE IF NOT EXISTS ' || locks || '.INT_LOCK_FENCE (ID INTEGER PRIMARY KEY AUTOINCREMENT); INSERT OR IGNORE INTO ' || locks || '.INT_LOCK_FENCE SELECT MAX(ID) FROM ' || fences
		|| '.INT_LOCK_FENCE; then migrations.Up with the Prefix ' || locks || '.INT_, and that Prefix in all programs'
	FROM (SELECT (SELECT schema FROM pragma_table_list('INT_LOCK') WHERE '' IN ('', schema) ORDER BY schema <> 'temp', schema <> 'main' LIMIT 1) AS locks,
		(SELECT schema FROM pragma_table_list('INT_LOCK_FENCE') WHERE '' IN ('', schema) ORDER BY schema <> 'temp', schema <> 'main' LIMIT 1) AS fences) WHERE fences <> locks AND locks <> 'temp';

-- Fence
SELECT * FROM INT_LOCK_FENCE WHERE 1 = 0;

-- Clock
SELECT CAST(ROUND((julianday(datetime('now', 'subsec')) - julianday('1970-01-01')) * 86400000) * 1000 AS INTEGER);

-- Cluster
;

-- ClusterVariables
;

-- Pin
;

-- ReadOnly
PRAGMA query_only;

-- Version
SELECT 'SQLite ' || sqlite_version();

-- File
SELECT COALESCE(file, '') FROM pragma_database_list WHERE name = 'main';

