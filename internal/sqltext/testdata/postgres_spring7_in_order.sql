INSERT INTO INT_LOCK AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
SELECT :region, :key, :holder, (clock_timestamp() AT TIME ZONE 'UTC'), ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond') FROM set_config('lock_timeout', '250', true) AS lock_timeout
WHERE CASE WHEN COALESCE(CAST(:turn AS BIGINT), 0) = 0 THEN TRUE ELSE pg_try_advisory_xact_lock_shared(CAST(:turn AS BIGINT) # CAST(CAST(CAST('INT_LOCK' AS regclass) AS oid) AS BIGINT)) END
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = (clock_timestamp() AT TIME ZONE 'UTC'), EXPIRED_AFTER = ((clock_timestamp() AT TIME ZONE 'UTC') + CAST(:left AS BIGINT) * INTERVAL '1 microsecond')
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR held.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
RETURNING nextval('INT_LOCK_FENCE');

INSERT INTO INT_LOCK AS held (REGION, LOCK_KEY, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)
SELECT :region, mine.k, mine.h, (SELECT (clock_timestamp() AT TIME ZONE 'UTC')), (SELECT (clock_timestamp() AT TIME ZONE 'UTC')) + mine.l * INTERVAL '1 microsecond' FROM set_config('lock_timeout', '250', true) AS lock_timeout, json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36), l BIGINT, t BIGINT)
WHERE CASE WHEN COALESCE(mine.t, 0) = 0 THEN TRUE ELSE pg_try_advisory_xact_lock_shared(mine.t # CAST(CAST(CAST('INT_LOCK' AS regclass) AS oid) AS BIGINT)) END
ON CONFLICT (LOCK_KEY, REGION) DO UPDATE
SET CLIENT_ID = EXCLUDED.CLIENT_ID, CREATED_DATE = (clock_timestamp() AT TIME ZONE 'UTC'), EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + (EXCLUDED.EXPIRED_AFTER - EXCLUDED.CREATED_DATE)
WHERE held.CLIENT_ID = EXCLUDED.CLIENT_ID OR held.EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC')
RETURNING LOCK_KEY, nextval('INT_LOCK_FENCE');
