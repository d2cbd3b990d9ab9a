-- First of all, because a later upgrade from the UPDATE's lock to that of ALTER
-- TABLE is a deadlock with anybody who has begun to wait for one of the rows.
LOCK TABLE {prefix}LOCK IN ACCESS EXCLUSIVE MODE;

-- From now on a lease is judged by CREATED_DATE and the judge's time-to-live (in
-- microseconds): this makes it end when it would have ended.
-- when EXPIRED_AFTER is there
UPDATE {prefix}LOCK SET CREATED_DATE = EXPIRED_AFTER - {ttl} * INTERVAL '1 microsecond';

ALTER TABLE {prefix}LOCK DROP COLUMN IF EXISTS EXPIRED_AFTER;
