UPDATE INT_LOCK SET CLIENT_ID = :next, EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') - INTERVAL '1 day'
WHERE ctid = (SELECT ctid FROM INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = :key ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1) AND (REGION = :region AND LOCK_KEY = :key) IS TRUE
AND CLIENT_ID = :holder AND set_config('lock_timeout', '250', true) <> '' AND set_config('synchronous_commit', 'off', true) <> '' RETURNING pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY));

UPDATE ONLY INT_LOCK SET CLIENT_ID = :next, EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') - INTERVAL '1 day' WHERE ctid = ANY (ARRAY(
SELECT held.ctid FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)),
LATERAL (SELECT ctid FROM ONLY INT_LOCK WHERE REGION >= :region AND REGION <= :region AND LOCK_KEY = mine.k AND CLIENT_ID = mine.h ORDER BY LOCK_KEY DESC, REGION DESC LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS held WHERE (SELECT set_config('lock_timeout', '250', true) || set_config('synchronous_commit', 'off', true)) <> ''))
RETURNING LOCK_KEY, CASE WHEN pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY)) IS NOT NULL THEN CLIENT_ID END;
