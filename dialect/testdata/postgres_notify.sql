DELETE FROM INT_LOCK USING set_config('lock_timeout', '250', true) AS patience, set_config('synchronous_commit', 'off', true) AS haste WHERE REGION = :region AND LOCK_KEY = :key AND CLIENT_ID = :holder RETURNING pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY));

WITH free AS (SELECT LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY IN (SELECT CAST(item AS CHAR(36)) FROM json_array_elements_text(CAST(:keys AS JSON)) AS item) AND CLIENT_ID IN (SELECT CAST(item AS CHAR(36)) FROM json_array_elements_text(CAST(:holders AS JSON)) AS item) FOR UPDATE SKIP LOCKED),
gone AS (DELETE FROM INT_LOCK USING set_config('lock_timeout', '250', true) AS patience, set_config('synchronous_commit', 'off', true) AS haste WHERE REGION = :region AND LOCK_KEY IN (SELECT LOCK_KEY FROM free)
RETURNING CLIENT_ID, pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY)))
SELECT CLIENT_ID FROM gone;

DELETE FROM INT_LOCK WHERE REGION = :region AND SUBSTR(CLIENT_ID, 1, LENGTH(:client)) = :client AND LENGTH(RTRIM(CLIENT_ID)) = LENGTH(:client) + 11 RETURNING pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY));

DELETE FROM INT_LOCK WHERE REGION = :region AND LOCK_KEY IN
(SELECT LOCK_KEY FROM INT_LOCK WHERE REGION = :region AND EXPIRED_AFTER < (clock_timestamp() AT TIME ZONE 'UTC') FOR UPDATE SKIP LOCKED) RETURNING pg_notify('sqllock', 'int_lock' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY));
