-- From now on a lease is judged by CREATED_DATE and the judge's time-to-live (in
-- microseconds): this makes it end when it would have ended.
-- when EXPIRED_AFTER is there
UPDATE {prefix}LOCK SET CREATED_DATE = TIMESTAMPADD(MICROSECOND, -{ttl}, EXPIRED_AFTER);

-- when EXPIRED_AFTER is there
ALTER TABLE {prefix}LOCK DROP COLUMN EXPIRED_AFTER;
