-- The column of Spring Integration 7. The table stays locked from the first
-- statement to the COMMIT, so nobody sees the column without a value.
ALTER TABLE {prefix}LOCK ADD COLUMN IF NOT EXISTS EXPIRED_AFTER TIMESTAMP;

-- When the leases that are there end, only their holders know. They are taken
-- to last for a whole time-to-live (in microseconds) from now.
UPDATE {prefix}LOCK
SET EXPIRED_AFTER = (clock_timestamp() AT TIME ZONE 'UTC') + {ttl} * INTERVAL '1 microsecond'
WHERE EXPIRED_AFTER IS NULL;

-- With a default, Spring 6 could go on inserting rows, which would look expired
-- to all others: two holders. Without one its insert is refused.
ALTER TABLE {prefix}LOCK
	ALTER COLUMN EXPIRED_AFTER SET NOT NULL,
	ALTER COLUMN EXPIRED_AFTER DROP DEFAULT;
