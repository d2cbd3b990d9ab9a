-- Begin
BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 5000; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 60000; SELECT pg_advisory_xact_lock(CAST(:turn AS BIGINT) # CAST(CAST(CAST('INT_LOCK' AS regclass) AS oid) AS BIGINT));

-- Take
;

-- End
COMMIT;

-- After
;

-- Session
SELECT pg_backend_pid();

-- Yield
WITH waiting AS (SELECT pid, locktype, database, virtualxid, virtualtransaction FROM pg_locks WHERE NOT granted)
SELECT COUNT(pg_cancel_backend(pid)) FROM waiting WHERE locktype = 'advisory' AND pid IN ({sessions}) AND EXISTS (
SELECT 1 FROM waiting AS server JOIN waiting AS session ON session.virtualtransaction = server.virtualxid AND session.locktype = 'advisory'
WHERE server.locktype = 'virtualxid' AND session.database = (SELECT oid FROM pg_database WHERE datname = current_database()));

