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

-- OldNames
SELECT ID FROM INT_LOCK_NAME WHERE SEEN < ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(-86400000000 AS BIGINT) * INTERVAL '1 microsecond') LIMIT 500;

-- DeleteNames
DELETE FROM INT_LOCK_NAME WHERE ID = ANY (ARRAY(SELECT json_array_elements_text(CAST(:keys AS JSON)))) AND SEEN < ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(-86400000000 AS BIGINT) * INTERVAL '1 microsecond');

-- Columns
SELECT server.version, 
CASE WHEN current_setting('client_encoding') = 'UTF8' OR current_setting('server_encoding') = 'SQL_ASCII'
	OR current_setting('client_encoding') = 'SQL_ASCII' AND current_setting('server_encoding') = 'UTF8'
	THEN '' ELSE 'client_encoding is ' || current_setting('client_encoding') || ': add client_encoding=UTF8 to the DSN' END,
(SELECT CASE WHEN relkind NOT IN ('r', 'p') THEN 'it is no table, but a view or the like: name the table itself by Prefix, or by the search_path'
	ELSE COALESCE((SELECT string_agg('column ' || upper(attname) || ' is ' || format_type(c.type, c.digits), ', ')
		|| ', a lease needs TIMESTAMP(6) without time zone: change it, while no program uses the table'
		FROM (SELECT attname, CASE typtype WHEN 'd' THEN typbasetype ELSE atttypid END AS type, CASE typtype WHEN 'd' THEN typtypmod ELSE atttypmod END AS digits
			FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid WHERE attrelid = pg_class.oid AND attname IN ('created_date', 'expired_after')) AS c
		WHERE c.type <> CAST('timestamp' AS regtype) OR c.digits BETWEEN 0 AND 2), '') END
	FROM pg_class WHERE pg_class.oid = CAST('INT_LOCK' AS regclass)),
'',
(SELECT CASE WHEN typname = 'citext' THEN 'citext' WHEN to_jsonb(pg_collation) ->> 'collisdeterministic' = 'false' THEN collname ELSE '' END
	FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid LEFT JOIN pg_collation ON pg_collation.oid = attcollation
	WHERE attrelid = CAST('INT_LOCK' AS regclass) AND attname = 'lock_key'), held.* FROM (SELECT version() || CASE WHEN EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = 'sys' AND relname = 'iam_pg_role_mappings') THEN ' Aurora DSQL' ELSE '' END AS version) AS server LEFT JOIN INT_LOCK AS held ON 1 = 0;

-- Fence
SELECT CAST('INT_LOCK_FENCE' AS regclass);

-- Clock
SELECT CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM TIMESTAMP '1970-01-01'), -9e9), 9e9) * 1000000 AS BIGINT);

-- Cluster
;

-- ClusterVariables
;

-- ReadOnly
SELECT CAST(current_setting('transaction_read_only') = 'on' AS INTEGER);

-- Version
SELECT version() || CASE WHEN EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = 'sys' AND relname = 'iam_pg_role_mappings') THEN ' Aurora DSQL' ELSE '' END;

-- File
;

