DELETE FROM INT_LOCK USING set_config('lock_timeout', '250', true) AS lock_timeout, set_config('synchronous_commit', 'off', true) AS async_commit WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder RETURNING pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY));

DELETE FROM ONLY INT_LOCK WHERE ctid = ANY (ARRAY(
SELECT held.ctid FROM json_to_recordset(CAST(:rows AS JSON)) AS mine(k CHAR(36), h CHAR(36)), ONLY INT_LOCK AS held
WHERE (SELECT set_config('lock_timeout', '250', true) || set_config('synchronous_commit', 'off', true)) <> '' AND held.REGION = :region AND held.LOCK_KEY = mine.k AND held.CLIENT_ID = mine.h AND length(mine.k) BETWEEN 1 AND 36
FOR UPDATE OF held SKIP LOCKED)) AND (:region <> '' OR (SELECT count(*) FROM generate_series(1, 1000000)) < 0)
RETURNING LOCK_KEY, CASE WHEN pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY)) IS NOT NULL THEN CLIENT_ID END;

DELETE FROM INT_LOCK WHERE REGION = :region AND (LOCK_KEY IN
(SELECT LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND SUBSTR(CLIENT_ID, 1, LENGTH(:client)) = :client AND LENGTH(RTRIM(CLIENT_ID)) = LENGTH(:client) + 11 AND length(LOCK_KEY) BETWEEN 0 AND 36 FOR UPDATE SKIP LOCKED)) IS TRUE RETURNING pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY));

DELETE FROM INT_LOCK WHERE REGION = :region AND (LOCK_KEY IN
(SELECT LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC') AND length(LOCK_KEY) BETWEEN 0 AND 36 FOR UPDATE SKIP LOCKED)) IS TRUE RETURNING pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY));
