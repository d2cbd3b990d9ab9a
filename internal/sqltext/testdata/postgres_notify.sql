DELETE FROM INT_LOCK USING set_config('lock_timeout', '250', true) AS lock_timeout, set_config('synchronous_commit', 'off', true) AS async_commit WHERE REGION = :region AND LOCK_KEY = :key AND (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0) AND CLIENT_ID = :holder RETURNING pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY));

DELETE FROM ONLY INT_LOCK WHERE ctid = ANY (ARRAY(
SELECT held.ctid FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid FROM ONLY INT_LOCK WHERE REGION = :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h FOR UPDATE SKIP LOCKED) AS held WHERE (SELECT set_config('lock_timeout', '250', true) || set_config('synchronous_commit', 'off', true)) <> '' AND (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0)))
RETURNING LOCK_KEY, CASE WHEN pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY)) IS NOT NULL THEN CLIENT_ID END;

WITH picked AS (SELECT ctid AS place, REGION, LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND SUBSTR(CLIENT_ID, 1, LENGTH(:client)) = :client AND LENGTH(RTRIM(CLIENT_ID)) = LENGTH(:client) + 11 LIMIT 1000 FOR UPDATE SKIP LOCKED)
DELETE FROM INT_LOCK WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) AND ((REGION, LOCK_KEY) IN (SELECT REGION, LOCK_KEY FROM picked)) IS TRUE RETURNING pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY));

WITH picked AS (SELECT ctid AS place, REGION, LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC') LIMIT 1000 FOR UPDATE SKIP LOCKED)
DELETE FROM INT_LOCK WHERE ctid = ANY (ARRAY(SELECT place FROM picked)) AND ((REGION, LOCK_KEY) IN (SELECT REGION, LOCK_KEY FROM picked)) IS TRUE RETURNING pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY));
