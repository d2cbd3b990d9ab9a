-- From now on, a lease ends at CREATED_DATE plus the reader's time-to-live (here in
-- microseconds). This keeps the instant at which each lease ends. Each of these statements
-- commits. So the column is renamed first: a process that knows it can acquire and renew
-- nothing after that.
-- if EXPIRED_AFTER exists
ALTER TABLE {prefix}LOCK RENAME COLUMN EXPIRED_AFTER TO LEASE_END;

-- if EXPIRED_AFTER or LEASE_END exists
UPDATE {prefix}LOCK SET CREATED_DATE = COALESCE(TIMESTAMPADD(MICROSECOND, -{ttl}, LEASE_END), CREATED_DATE);

-- if EXPIRED_AFTER or LEASE_END exists
ALTER TABLE {prefix}LOCK DROP COLUMN LEASE_END;
