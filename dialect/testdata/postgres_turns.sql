-- Begin
BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 5000; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 60000; SELECT pg_advisory_xact_lock(CAST(:turn AS BIGINT) # CAST(CAST(CAST('INT_LOCK' AS regclass) AS oid) AS BIGINT));

-- Take
;

-- End
COMMIT;

-- After
;

-- IsFree
SELECT CASE WHEN pg_try_advisory_xact_lock_shared(CAST(:turn AS BIGINT) # CAST(CAST(CAST('INT_LOCK' AS regclass) AS oid) AS BIGINT)) THEN 1 ELSE 0 END;

-- Session
SELECT pg_backend_pid();

