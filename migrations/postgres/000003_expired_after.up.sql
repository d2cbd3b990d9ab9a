-- The column of Spring Integration 7. The table is locked from the first statement to
-- the COMMIT, so no other transaction sees the column without a value.
ALTER TABLE {prefix}LOCK ADD COLUMN IF NOT EXISTS EXPIRED_AFTER TIMESTAMP;

-- Only the holders of existing leases know when these end. So they last for a whole
-- time-to-live (in microseconds) from now. A lock that stays taken for a minimum hold has a
-- CREATED_DATE of later than now.
UPDATE {prefix}LOCK
SET EXPIRED_AFTER = GREATEST(clock_timestamp() AT TIME ZONE 'UTC', CREATED_DATE) + {ttl} * INTERVAL '1 microsecond'
WHERE EXPIRED_AFTER IS NULL;

-- With a default, Spring 6 could go on inserting rows, which others would treat as
-- expired: two processes could hold the lock. Without a default, its INSERT fails.
ALTER TABLE {prefix}LOCK
	ALTER COLUMN EXPIRED_AFTER SET NOT NULL,
	ALTER COLUMN EXPIRED_AFTER DROP DEFAULT;
