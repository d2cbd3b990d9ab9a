-- Acquire
INSERT INTO INT_LOCK AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
SELECT :region, :key, :holder, (clock_timestamp() AT TIME ZONE 'UTC'), ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond') FROM set_config('lock_timeout', '250', true) AS lock_timeout
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = (clock_timestamp() AT TIME ZONE 'UTC'), EXPIRED_AFTER = ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond')
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR held.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
RETURNING nextval('INT_LOCK_FENCE');

-- AcquireAll
INSERT INTO INT_LOCK AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
SELECT :region, mine.k, mine.h, (SELECT (clock_timestamp() AT TIME ZONE 'UTC')), (SELECT (clock_timestamp() AT TIME ZONE 'UTC')) + mine.l * INTERVAL '1 microsecond' FROM set_config('lock_timeout', '250', true) AS lock_timeout, json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36), l BIGINT)
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = (clock_timestamp() AT TIME ZONE 'UTC'), EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR held.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
RETURNING LOCK_KEY, nextval('INT_LOCK_FENCE');

-- AcquireRow
;

-- Isolation
current_setting('transaction_isolation');

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
SELECT held.* FROM json_array_elements_text(CAST(:keys AS JSON)) AS mine(k), LATERAL (SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM CREATED_DATE), -9e9), 9e9) * 1000000 AS BIGINT), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM EXPIRED_AFTER) - EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')), -9e9), 9e9) * 1000000 AS BIGINT) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = CAST(mine.k AS CHAR(36)) OFFSET 0) AS held WHERE (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0);

-- PeekCurrent
;

-- BeforeCurrent
;

-- AfterCurrent
;

-- DrawOne
;

-- Draw
;

-- Trim
;

-- Peek
SELECT COALESCE(CLIENT_ID, ''), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM CREATED_DATE), -9e9), 9e9) * 1000000 AS BIGINT), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM EXPIRED_AFTER) - EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')), -9e9), 9e9) * 1000000 AS BIGINT) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0);

-- List
SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM CREATED_DATE), -9e9), 9e9) * 1000000 AS BIGINT), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM EXPIRED_AFTER) - EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')), -9e9), 9e9) * 1000000 AS BIGINT) FROM INT_LOCK ORDER BY REGION, LOCK_KEY;

-- ListFirst
SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM CREATED_DATE), -9e9), 9e9) * 1000000 AS BIGINT), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM EXPIRED_AFTER) - EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')), -9e9), 9e9) * 1000000 AS BIGINT) FROM INT_LOCK ORDER BY CASE WHEN EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC') THEN 1 ELSE 0 END, CREATED_DATE, REGION, LOCK_KEY LIMIT :limit;

-- Count
SELECT COUNT(CASE state WHEN 0 THEN 1 END), COUNT(CASE state WHEN 1 THEN 1 END), COUNT(CASE state WHEN 2 THEN 1 END), COUNT(CASE state WHEN 3 THEN 1 END) FROM (SELECT CASE WHEN RTRIM(CLIENT_ID) LIKE '%-k__________' THEN CASE WHEN EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC') THEN 2 ELSE 1 END WHEN EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC') THEN 3 ELSE 0 END AS state FROM INT_LOCK WHERE REGION = :region) AS counted;

-- Held
SELECT COUNT(*) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0) AND CLIENT_ID = :holder AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC');

-- Renew
UPDATE INT_LOCK SET EXPIRED_AFTER = GREATEST(EXPIRED_AFTER, ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond')) FROM set_config('lock_timeout', '1000', true) AS lock_timeout WHERE REGION = :region AND LOCK_KEY = :key AND (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0) AND CLIENT_ID = :holder AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC');

-- Guard
SELECT 1 FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC') AND (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0) FOR SHARE;

-- GuardByWriting
;

-- GuardAll
SELECT COUNT(*) FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT 1 FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC') FOR SHARE) AS held WHERE (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0);

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
WITH picked AS (SELECT held.* FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid AS place, REGION, LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC') FOR NO KEY UPDATE SKIP LOCKED) AS held WHERE (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0))
UPDATE INT_LOCK SET EXPIRED_AFTER = GREATEST(EXPIRED_AFTER, ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond')) WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) AND ((REGION, LOCK_KEY) IN (SELECT REGION, LOCK_KEY FROM picked)) IS TRUE RETURNING LOCK_KEY, CLIENT_ID;

-- HeldAll
SELECT held.* FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT LOCK_KEY, CLIENT_ID FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC') OFFSET 0) AS held WHERE (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0);

-- Keep
UPDATE INT_LOCK SET CLIENT_ID = :next, EXPIRED_AFTER = ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond') FROM set_config('lock_timeout', '1000', true) AS lock_timeout WHERE REGION = :region AND LOCK_KEY = :key AND (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0) AND CLIENT_ID = :holder AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC');

-- KeepAll
WITH picked AS (SELECT held.* FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid AS place, REGION, LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC') FOR NO KEY UPDATE SKIP LOCKED) AS held WHERE (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0))
UPDATE INT_LOCK SET CLIENT_ID = :next, EXPIRED_AFTER = ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond') WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) AND ((REGION, LOCK_KEY) IN (SELECT REGION, LOCK_KEY FROM picked)) IS TRUE RETURNING LOCK_KEY, CLIENT_ID;

-- Take
;

-- TakeAll
;

-- Park
;

-- ParkAll
;

-- Delete
DELETE FROM INT_LOCK USING set_config('lock_timeout', '250', true) AS lock_timeout, set_config('synchronous_commit', 'off', true) AS async_commit WHERE REGION = :region AND LOCK_KEY = :key AND (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0) AND CLIENT_ID = :holder;

-- DeleteAll
DELETE FROM ONLY INT_LOCK WHERE ctid = ANY (ARRAY(
SELECT held.ctid FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid FROM ONLY INT_LOCK WHERE REGION = :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h FOR UPDATE SKIP LOCKED) AS held WHERE (SELECT set_config('lock_timeout', '250', true) || set_config('synchronous_commit', 'off', true)) <> '' AND (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0)))
RETURNING LOCK_KEY, CLIENT_ID;

-- PickClient
;

-- DeleteClient
WITH picked AS (SELECT ctid AS place, REGION, LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND SUBSTR(CLIENT_ID, 1, LENGTH(:client)) = :client AND LENGTH(RTRIM(CLIENT_ID)) = LENGTH(:client) + 11 LIMIT 1000 FOR UPDATE SKIP LOCKED)
DELETE FROM INT_LOCK WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) AND ((REGION, LOCK_KEY) IN (SELECT REGION, LOCK_KEY FROM picked)) IS TRUE;

-- CountClient
SELECT COUNT(*) FROM INT_LOCK WHERE REGION = :region AND SUBSTR(CLIENT_ID, 1, LENGTH(:client)) = :client AND LENGTH(RTRIM(CLIENT_ID)) = LENGTH(:client) + 11;

-- PickExpired
;

-- DeleteExpired
WITH picked AS (SELECT ctid AS place, REGION, LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC') LIMIT 1000 FOR UPDATE SKIP LOCKED)
DELETE FROM INT_LOCK WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) AND ((REGION, LOCK_KEY) IN (SELECT REGION, LOCK_KEY FROM picked)) IS TRUE;

-- WriteNames
INSERT INTO INT_LOCK_NAME (ID, REGION, NAME, SEEN)
SELECT mine.k, :region, mine.h, (clock_timestamp() AT TIME ZONE 'UTC') FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k TEXT, h TEXT) WHERE true
ON CONFLICT (ID, REGION) DO UPDATE SET NAME = EXCLUDED.NAME, SEEN = EXCLUDED.SEEN;

-- WriteName
;

-- Names
SELECT REGION, ID, NAME FROM INT_LOCK_NAME WHERE ID = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS JSON))));

-- Runs
SELECT REGION, ID, NAME, CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM SEEN), -9e9), 9e9) * 1000000 AS BIGINT) FROM INT_LOCK_NAME WHERE (ID >= 'run' AND ID < 'ruo' OR ID >= 'skip' AND ID < 'skiq') LIMIT 10000;

-- RunsOf
SELECT REGION, ID, NAME, CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM SEEN), -9e9), 9e9) * 1000000 AS BIGINT) FROM INT_LOCK_NAME WHERE ID = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS JSON))));

-- ForgetRuns
DELETE FROM INT_LOCK_NAME WHERE REGION = :region AND ID = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS JSON))));

-- AddToName
INSERT INTO INT_LOCK_NAME AS known (ID, REGION, NAME, SEEN)
VALUES (:key, :region, :holder, (clock_timestamp() AT TIME ZONE 'UTC'))
ON CONFLICT (ID, REGION) DO UPDATE SET NAME = CAST(CAST(known.NAME AS BIGINT) + CAST(EXCLUDED.NAME AS BIGINT) AS VARCHAR(20)), SEEN = EXCLUDED.SEEN;

-- Waits
SELECT REGION, ID, NAME, CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM SEEN), -9e9), 9e9) * 1000000 AS BIGINT) FROM INT_LOCK_NAME WHERE ID LIKE 'wait%' AND SEEN > ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(-30000000 AS BIGINT) * INTERVAL '1 microsecond') LIMIT 1000;

-- OldNames
SELECT ID FROM INT_LOCK_NAME WHERE SEEN < ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(-86400000000 AS BIGINT) * INTERVAL '1 microsecond') AND NOT ((ID >= 'run' AND ID < 'ruo' OR ID >= 'skip' AND ID < 'skiq') AND SEEN >= ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(-7776000000000 AS BIGINT) * INTERVAL '1 microsecond')) LIMIT 500;

-- DeleteNames
DELETE FROM INT_LOCK_NAME WHERE ID = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS JSON)))) AND SEEN < ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(-86400000000 AS BIGINT) * INTERVAL '1 microsecond') AND NOT ((ID >= 'run' AND ID < 'ruo' OR ID >= 'skip' AND ID < 'skiq') AND SEEN >= ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(-7776000000000 AS BIGINT) * INTERVAL '1 microsecond'));

-- Columns
SELECT server.version, 
CASE WHEN current_setting('client_encoding') = 'UTF8' OR current_setting('server_encoding') = 'SQL_ASCII'
	OR current_setting('client_encoding') = 'SQL_ASCII' AND current_setting('server_encoding') = 'UTF8'
	THEN '' ELSE 'client_encoding is ' || current_setting('client_encoding') || ': add client_encoding=UTF8 to the DSN' END, held.* FROM (SELECT version() || CASE WHEN EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = 'sys' AND relname = 'iam_pg_role_mappings') THEN ' Aurora DSQL' ELSE '' END AS version) AS server LEFT JOIN INT_LOCK AS held ON 1 = 0;

-- Tables
WITH RECURSIVE named (relation, top) AS (VALUES ('LOCK', CAST(to_regclass('INT_LOCK') AS oid)), ('FENCE', to_regclass('INT_LOCK_FENCE'))),
parts (relation, top, part) AS (SELECT relation, top, top FROM named UNION ALL SELECT relation, top, inhrelid FROM parts JOIN pg_inherits ON inhparent = part),
places AS (SELECT relation, part = top AS is_top, CAST(relkind AS text) AS kind, CAST(relpersistence AS text) AS persistence,
	CASE WHEN part = top THEN '' ELSE 'has the part ' || CAST(part AS regclass) || ', which ' END AS which,
	CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || CAST(part AS regclass) AS object,
	(SELECT string_agg('ALTER TABLE ' || CAST(inhrelid AS regclass) || ' NO INHERIT INT_LOCK', '; ') FROM pg_inherits WHERE inhparent = top) AS disinherit
	FROM parts JOIN pg_class ON pg_class.oid = part),
flaws AS (SELECT relation, which || CASE WHEN relation = 'LOCK' AND kind IN ('v', 'm') THEN 'is a view' WHEN kind = 'f' THEN 'is a foreign table'
		WHEN relation = 'LOCK' AND kind NOT IN ('r', 'p') THEN 'is no table' WHEN relation = 'FENCE' AND kind <> 'S' THEN 'is no sequence'
		WHEN persistence = 't' THEN 'is temporary, so that no other session sees it'
		WHEN persistence = 'u' AND kind <> 'p' THEN 'is UNLOGGED, so that a crash of the server empties it while locks are held'
		WHEN is_top AND kind = 'r' AND disinherit <> '' THEN 'has tables that inherit from it, whose rows its key does not see' END AS flaw,
	CASE WHEN relation = 'FENCE' AND (kind <> 'S' OR persistence = 't') THEN 'DROP ' || object || '; CREATE SEQUENCE INT_LOCK_FENCE'
		WHEN kind NOT IN ('r', 'p', 'S') OR persistence = 't' THEN 'name the table itself by Prefix, or by the search_path'
		WHEN persistence = 'u' AND kind <> 'p' THEN 'ALTER ' || object || ' SET LOGGED' ELSE disinherit END AS cure,
	CASE WHEN is_top AND (kind NOT IN ('r', 'p') OR persistence = 't') THEN 'other' ELSE '' END AS flags FROM places),
locks AS (SELECT pg_attribute.*, typname, typcategory, typnotnull, typdefault, CASE typtype WHEN 'd' THEN typbasetype ELSE atttypid END AS type,
	CASE typtype WHEN 'd' THEN typtypmod ELSE atttypmod END AS digits, COALESCE((SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum), '') AS value
	FROM named JOIN pg_attribute ON attrelid = top AND attnum > 0 AND NOT attisdropped JOIN pg_type ON pg_type.oid = atttypid WHERE relation = 'LOCK'),
collations AS (SELECT attname, typname, pg_collation.oid, collname, to_jsonb(pg_collation) AS c, to_jsonb(pg_database) AS d,
	CASE WHEN collname = 'default' THEN datcollate ELSE collcollate END AS locale
	FROM locks JOIN pg_collation ON pg_collation.oid = attcollation CROSS JOIN pg_database WHERE datname = current_database() AND attname IN ('lock_key', 'region'))
SELECT relation AS relation, 'flaw' AS fact, flaw AS name, '' AS text, flags AS flags, '' AS more, cure AS cure FROM flaws WHERE flaw <> ''
UNION ALL SELECT relation, 'partitioned', '', '', '', '', '' FROM places WHERE relation = 'LOCK' AND kind = 'p' AND is_top
UNION ALL SELECT 'FENCE', 'flaw', 'belongs to ' || CAST(refobjid AS regclass) || ', and is dropped or restarted with it', '', '', '',
	CASE deptype WHEN 'a' THEN 'ALTER SEQUENCE INT_LOCK_FENCE OWNED BY NONE' ELSE 'create a sequence of its own that starts above it' END
	FROM named JOIN pg_depend ON objid = top AND classid = CAST('pg_class' AS regclass) AND refclassid = classid AND deptype IN ('a', 'i') WHERE relation = 'FENCE'
UNION ALL SELECT 'FENCE', 'flaw', 'is in the schema ' || CAST(fences.relnamespace AS regnamespace) || ', and INT_LOCK in ' || CAST(locks.relnamespace AS regnamespace)
		|| ', so that a program with another search_path draws its tokens from elsewhere', '', '', '',
	format('CREATE SEQUENCE IF NOT EXISTS %1$s.INT_LOCK_FENCE; SELECT setval(''%1$s.INT_LOCK_FENCE'', GREATEST(nextval(''%1$s.INT_LOCK_FENCE''), nextval(''%2$s.INT_LOCK_FENCE''))); '
		|| 'then sqllock migrate up --prefix %1$s.INT_, and that Prefix in all programs, while no program uses the table', CAST(locks.relnamespace AS regnamespace), CAST(fences.relnamespace AS regnamespace))
	FROM pg_class AS locks JOIN pg_class AS fences ON locks.relnamespace <> fences.relnamespace AND locks.relpersistence <> 't' AND fences.relpersistence <> 't'
	WHERE locks.oid = to_regclass('INT_LOCK') AND fences.oid = to_regclass('INT_LOCK_FENCE')
UNION ALL SELECT 'FENCE', 'sequence', CAST(seqincrement AS text), CASE seqcache WHEN 1 THEN '0' ELSE CAST(seqcache AS text) END, CAST(CAST(seqcycle AS integer) AS text), CAST(seqmin AS text), CAST(seqmax AS text)
	FROM named JOIN pg_sequence ON seqrelid = top
UNION ALL SELECT 'LOCK', 'column', upper(attname), format_type(type, digits),
	concat_ws(' ', CASE WHEN NOT typnotnull AND (NOT attnotnull OR EXISTS (SELECT FROM pg_constraint WHERE conrelid = attrelid AND contype = 'n' AND conkey[1] = attnum AND NOT convalidated)) THEN 'null' END, CASE WHEN attidentity <> '' OR value ~* '(nextval|uuid)' THEN 'own' END,
		CASE WHEN value <> '' OR typdefault <> '' THEN 'default' END,
		CASE WHEN attname IN ('created_date', 'expired_after') AND type <> CAST('timestamp' AS regtype) THEN 'inexact' END,
		CASE WHEN attname IN ('lock_key', 'region', 'client_id') AND typcategory <> 'S' THEN 'alters' END,
		CASE WHEN attname IN ('lock_key', 'client_id') AND type IN (CAST('bpchar' AS regtype), CAST('varchar' AS regtype)) AND digits BETWEEN 4 AND 39 THEN 'narrow' END),
	CASE WHEN digits BETWEEN 0 AND 6 THEN CAST(digits AS text) ELSE '' END,
	'ALTER TABLE INT_LOCK ALTER ' || upper(attname) || CASE WHEN attname IN ('lock_key', 'client_id') THEN ' TYPE CHAR(36)' WHEN attname = 'region' THEN ' TYPE VARCHAR(100)'
		ELSE ' TYPE TIMESTAMP(6)' || CASE WHEN type = CAST('timestamptz' AS regtype) THEN ' USING ' || attname || ' AT TIME ZONE ''UTC''' ELSE '' END || ', ALTER ' || upper(attname) || ' SET NOT NULL' END
	FROM locks
UNION ALL SELECT 'LOCK', 'collation', upper(attname), CASE WHEN typname = 'citext' THEN 'citext' WHEN collname = 'default' THEN locale ELSE collname END,
	concat_ws(' ', CASE WHEN typname = 'citext' OR c ->> 'collisdeterministic' = 'false' THEN 'merges' END,
		CASE WHEN COALESCE(locale, '') ~* '^(C|POSIX|C[.].*)$' AND COALESCE(CASE WHEN collname = 'default' THEN d ->> 'datlocprovider' ELSE c ->> 'collprovider' END, 'c') <> 'i'
			OR COALESCE(CASE WHEN collname = 'default' THEN d ->> 'datlocprovider' ELSE c ->> 'collprovider' END, 'c') = 'b' THEN 'fixed' END),
	CASE WHEN pg_collation_actual_version(oid) <> CASE WHEN collname = 'default' THEN d ->> 'datcollversion' ELSE c ->> 'collversion' END
		THEN CASE WHEN collname = 'default' THEN d ->> 'datcollversion' ELSE c ->> 'collversion' END || ' to ' || pg_collation_actual_version(oid) ELSE '' END,
	'REINDEX TABLE INT_LOCK; ALTER ' || CASE WHEN collname = 'default' THEN 'DATABASE ' || quote_ident(current_database()) || ' REFRESH COLLATION VERSION' ELSE 'COLLATION ' || CAST(oid AS regcollation) || ' REFRESH VERSION' END
	FROM collations
UNION ALL SELECT 'LOCK', 'key', CAST(CAST(indexrelid AS regclass) AS text), COALESCE(upper(attname) || CASE WHEN to_jsonb(pg_index) ->> 'indnullsnotdistinct' = 'true' AND NOT attnotnull THEN ' NULLS NOT DISTINCT' ELSE '' END, '(an expression)'),
	CASE WHEN NOT indisvalid OR NOT indisready THEN 'is invalid' WHEN indpred IS NOT NULL THEN 'is partial' WHEN NOT indimmediate THEN 'is deferrable' WHEN indisexclusion THEN 'is an exclusion' ELSE '' END, CAST(place AS text),
	COALESCE((SELECT 'ALTER TABLE INT_LOCK DROP CONSTRAINT ' || quote_ident(conname) FROM pg_constraint WHERE conindid = indexrelid AND conrelid = top AND contype IN ('p', 'u', 'x')), 'DROP INDEX ' || CAST(indexrelid AS regclass))
	FROM named JOIN pg_index ON indrelid = top AND (indisunique OR indisexclusion) CROSS JOIN LATERAL unnest(CAST(indkey AS smallint[])) WITH ORDINALITY AS k (attribute, place)
	LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = attribute AND attribute <> 0 WHERE relation = 'LOCK' AND place <= indnkeyatts;

-- Fence
SELECT CAST('INT_LOCK_FENCE' AS regclass);

-- Clock
SELECT CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM TIMESTAMP '1970-01-01'), -9e9), 9e9) * 1000000 AS BIGINT);

-- Cluster
;

-- ClusterVariables
;

-- Pin
SELECT COALESCE('session ' || l.pid, 'a prepared transaction')
	|| COALESCE(' (' || NULLIF(CONCAT_WS(', ', a.usename, NULLIF(a.application_name, ''), host(a.client_addr)), '') || ')', '') AS session,
	COALESCE(CAST(EXTRACT(EPOCH FROM clock_timestamp() - a.xact_start) * 1000000 AS BIGINT), -1) AS since
FROM INT_LOCK AS held JOIN pg_locks AS l ON l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.transactionid = held.xmax
LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE held.REGION = :region AND held.LOCK_KEY = :key ORDER BY since DESC LIMIT 1;

-- ReadOnly
SELECT CAST(current_setting('transaction_read_only') = 'on' AND clock_timestamp() IS NOT NULL AS INTEGER);

-- Version
SELECT version() || CASE WHEN EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = 'sys' AND relname = 'iam_pg_role_mappings') THEN ' Aurora DSQL' ELSE '' END;

-- File
;

