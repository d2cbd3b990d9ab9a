-- This comes first: if the UPDATE's lock were upgraded to that of ALTER TABLE later,
-- there could be a deadlock with a transaction that waits for one of the rows.
LOCK TABLE {prefix}LOCK IN ACCESS EXCLUSIVE MODE;

-- From now on, a lease ends at CREATED_DATE plus the reader's time-to-live (here in
-- microseconds). This keeps the instant at which each lease ends.
-- if EXPIRED_AFTER exists
UPDATE {prefix}LOCK SET CREATED_DATE = COALESCE(EXPIRED_AFTER - {ttl} * INTERVAL '1 microsecond', CREATED_DATE);

ALTER TABLE {prefix}LOCK DROP COLUMN IF EXISTS EXPIRED_AFTER;
