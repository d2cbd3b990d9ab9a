-- From now on, a lease ends at CREATED_DATE plus the reader's time-to-live (here in
-- microseconds). This keeps the instant at which each lease ends.
-- if EXPIRED_AFTER exists
UPDATE {prefix}LOCK
SET CREATED_DATE = COALESCE(datetime(EXPIRED_AFTER, 'subsec', printf('%.6f seconds', -{ttl} / 1000000.0)), CREATED_DATE);

-- if EXPIRED_AFTER exists
ALTER TABLE {prefix}LOCK DROP COLUMN EXPIRED_AFTER;
