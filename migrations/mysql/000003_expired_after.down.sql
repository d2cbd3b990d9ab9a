-- From now on, a lease ends at CREATED_DATE plus the reader's time-to-live (here in
-- microseconds). This keeps the instant at which each lease ends.
-- if EXPIRED_AFTER exists
UPDATE {prefix}LOCK SET CREATED_DATE = TIMESTAMPADD(MICROSECOND, -{ttl}, EXPIRED_AFTER);

-- if EXPIRED_AFTER exists
ALTER TABLE {prefix}LOCK DROP COLUMN EXPIRED_AFTER;
