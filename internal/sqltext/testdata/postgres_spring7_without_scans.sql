-- PeekAll
SELECT held.* FROM json_array_elements_text(CAST(:keys AS JSON)) AS mine(k), LATERAL (SELECT REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM CREATED_DATE), -9e9), 9e9) * 1000000 AS BIGINT), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM EXPIRED_AFTER) - EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')), -9e9), 9e9) * 1000000 AS BIGINT) FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = CAST(mine.k AS CHAR(36)) ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 OFFSET 0) AS held;

-- Peek
SELECT COALESCE(CLIENT_ID, ''), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')) - EXTRACT(EPOCH FROM CREATED_DATE), -9e9), 9e9) * 1000000 AS BIGINT), CAST(LEAST(GREATEST(EXTRACT(EPOCH FROM EXPIRED_AFTER) - EXTRACT(EPOCH FROM (clock_timestamp() AT TIME ZONE 'UTC')), -9e9), 9e9) * 1000000 AS BIGINT) FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = :key ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1;

-- Held
SELECT COUNT(*) FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC');

-- Renew
UPDATE INT_LOCK SET EXPIRED_AFTER = GREATEST(EXPIRED_AFTER, ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond')) FROM set_config('lock_timeout', '1000', true) AS lock_timeout WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC');

-- RenewAll
WITH picked AS (SELECT held.* FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid AS place, REGION, LOCK_KEY FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC') ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS held)
UPDATE INT_LOCK SET EXPIRED_AFTER = GREATEST(EXPIRED_AFTER, ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond')) WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) AND ((REGION, LOCK_KEY) IN (SELECT REGION, LOCK_KEY FROM picked)) IS TRUE RETURNING LOCK_KEY, CLIENT_ID;

-- HeldAll
SELECT held.* FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT LOCK_KEY, CLIENT_ID FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC') ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 OFFSET 0) AS held;

-- Keep
UPDATE INT_LOCK SET CLIENT_ID = :next, EXPIRED_AFTER = ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond') FROM set_config('lock_timeout', '1000', true) AS lock_timeout WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC');

-- KeepAll
WITH picked AS (SELECT held.* FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid AS place, REGION, LOCK_KEY FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h AND EXPIRED_AFTER >= (clock_timestamp() AT TIME ZONE 'UTC') ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS held)
UPDATE INT_LOCK SET CLIENT_ID = :next, EXPIRED_AFTER = ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond') WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) AND ((REGION, LOCK_KEY) IN (SELECT REGION, LOCK_KEY FROM picked)) IS TRUE RETURNING LOCK_KEY, CLIENT_ID;

-- Take
UPDATE INT_LOCK AS held SET CLIENT_ID = :holder, CREATED_DATE = (clock_timestamp() AT TIME ZONE 'UTC'), EXPIRED_AFTER = ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond')
WHERE ctid = (SELECT ctid FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = :key ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1) AND (REGION = :region AND LOCK_KEY = :key) IS TRUE
AND (CLIENT_ID = :holder OR held.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')) AND set_config('lock_timeout', '250', true) <> ''
RETURNING nextval('INT_LOCK_FENCE');

-- TakeAll
UPDATE INT_LOCK AS held SET CLIENT_ID = mine.h, CREATED_DATE = (clock_timestamp() AT TIME ZONE 'UTC'), EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + mine.l * INTERVAL '1 microsecond'
FROM set_config('lock_timeout', '250', true) AS lock_timeout, (SELECT k, h, l, (SELECT ctid FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = k ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1) AS place
FROM json_to_recordset(CAST(:rows AS JSON)) AS proposed(k CHAR(36), h CHAR(36), l BIGINT) OFFSET 0) AS mine
WHERE held.ctid = mine.place AND (REGION = :region AND LOCK_KEY = mine.k) IS TRUE AND (CLIENT_ID = mine.h OR held.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC'))
RETURNING LOCK_KEY, nextval('INT_LOCK_FENCE');

-- Park
UPDATE INT_LOCK SET CLIENT_ID = :next, EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') - INTERVAL '1 day'
WHERE ctid = (SELECT ctid FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = :key ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1) AND (REGION = :region AND LOCK_KEY = :key) IS TRUE
AND CLIENT_ID = :holder AND set_config('lock_timeout', '250', true) <> '' AND set_config('synchronous_commit', 'off', true) <> '';

-- ParkAll
UPDATE ONLY INT_LOCK SET CLIENT_ID = :next, EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') - INTERVAL '1 day' WHERE ctid = ANY (ARRAY(
SELECT held.ctid FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid FROM ONLY INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS held WHERE (SELECT set_config('lock_timeout', '250', true) || set_config('synchronous_commit', 'off', true)) <> ''))
RETURNING LOCK_KEY, CLIENT_ID;

-- Delete
DELETE FROM INT_LOCK USING set_config('lock_timeout', '250', true) AS lock_timeout, set_config('synchronous_commit', 'off', true) AS async_commit WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder;

-- DeleteAll
DELETE FROM ONLY INT_LOCK WHERE ctid = ANY (ARRAY(
SELECT held.ctid FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid FROM ONLY INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 FOR UPDATE SKIP LOCKED) AS held WHERE (SELECT set_config('lock_timeout', '250', true) || set_config('synchronous_commit', 'off', true)) <> ''))
RETURNING LOCK_KEY, CLIENT_ID;

