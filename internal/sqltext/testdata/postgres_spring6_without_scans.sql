-- PeekAll
SELECT held.* FROM json_array_elements_text(CAST(:keys AS JSON)) AS mine(k), LATERAL (SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM CREATED_DATE), -9e9), 9e9) * 1000000 AS BIGINT), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (CREATED_DATE + CAST(:ttl AS BIGINT) * INTERVAL '1 microsecond')) - EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')), -9e9), 9e9) * 1000000 AS BIGINT) FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = CAST(mine.k AS CHAR(36)) ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 OFFSET 0) AS held;

-- Peek
SELECT COALESCE(CLIENT_ID, ''), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM CREATED_DATE), -9e9), 9e9) * 1000000 AS BIGINT), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (CREATED_DATE + CAST(:ttl AS BIGINT) * INTERVAL '1 microsecond')) - EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')), -9e9), 9e9) * 1000000 AS BIGINT) FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = :key ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1;

-- Held
SELECT COUNT(*) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND (CREATED_DATE + CAST(:ttl AS BIGINT) * INTERVAL '1 microsecond') >= (clock_timestamp() AT TIME ZONE 'UTC');

-- Renew
UPDATE INT_LOCK SET CREATED_DATE = ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:shift AS BIGINT) * INTERVAL '1 microsecond') FROM set_config('lock_timeout', '1000', true) AS lock_timeout, (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND (CREATED_DATE + CAST(:ttl AS BIGINT) * INTERVAL '1 microsecond') >= (clock_timestamp() AT TIME ZONE 'UTC') AND EXPIRED_AFTER IS NULL;

-- RenewAll
WITH picked AS (SELECT held.* FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid AS place, REGION, LOCK_KEY FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h AND (CREATED_DATE + CAST(:ttl AS BIGINT) * INTERVAL '1 microsecond') >= (clock_timestamp() AT TIME ZONE 'UTC') ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS held)
UPDATE INT_LOCK SET CREATED_DATE = ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:shift AS BIGINT) * INTERVAL '1 microsecond') FROM (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) AND ((REGION, LOCK_KEY) IN (SELECT REGION, LOCK_KEY FROM picked)) IS TRUE AND EXPIRED_AFTER IS NULL RETURNING LOCK_KEY, CLIENT_ID;

-- HeldAll
SELECT held.* FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT LOCK_KEY, CLIENT_ID FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h AND (CREATED_DATE + CAST(:ttl AS BIGINT) * INTERVAL '1 microsecond') >= (clock_timestamp() AT TIME ZONE 'UTC') ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 OFFSET 0) AS held;

-- Keep
UPDATE INT_LOCK SET CLIENT_ID = :next, CREATED_DATE = ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:shift AS BIGINT) * INTERVAL '1 microsecond') FROM set_config('lock_timeout', '1000', true) AS lock_timeout, (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND (CREATED_DATE + CAST(:ttl AS BIGINT) * INTERVAL '1 microsecond') >= (clock_timestamp() AT TIME ZONE 'UTC') AND EXPIRED_AFTER IS NULL;

-- KeepAll
WITH picked AS (SELECT held.* FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid AS place, REGION, LOCK_KEY FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h AND (CREATED_DATE + CAST(:ttl AS BIGINT) * INTERVAL '1 microsecond') >= (clock_timestamp() AT TIME ZONE 'UTC') ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS held)
UPDATE INT_LOCK SET CLIENT_ID = :next, CREATED_DATE = ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:shift AS BIGINT) * INTERVAL '1 microsecond') FROM (SELECT NULL AS EXPIRED_AFTER) AS four_columns WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) AND ((REGION, LOCK_KEY) IN (SELECT REGION, LOCK_KEY FROM picked)) IS TRUE AND EXPIRED_AFTER IS NULL RETURNING LOCK_KEY, CLIENT_ID;

-- Delete
DELETE FROM INT_LOCK USING set_config('lock_timeout', '250', true) AS lock_timeout, set_config('synchronous_commit', 'off', true) AS async_commit WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder;

-- DeleteAll
DELETE FROM ONLY INT_LOCK WHERE ctid = ANY (ARRAY(
SELECT held.ctid FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid FROM ONLY INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 FOR UPDATE SKIP LOCKED) AS held WHERE (SELECT set_config('lock_timeout', '250', true) || set_config('synchronous_commit', 'off', true)) <> ''))
RETURNING LOCK_KEY, CLIENT_ID;

