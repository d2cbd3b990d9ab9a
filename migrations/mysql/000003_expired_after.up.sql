-- The column of Spring Integration 7. On MySQL, ALTER TABLE ends the transaction. So
-- if the migration was interrupted, each of these statements may have run before.
-- if EXPIRED_AFTER is missing
ALTER TABLE {prefix}LOCK ADD COLUMN EXPIRED_AFTER DATETIME(6);

-- Only the holders of existing leases know when these end. So they last for a whole
-- time-to-live (in microseconds) from now. A lock that stays taken for a minimum hold has a
-- CREATED_DATE of later than now. In a NOT NULL column, IS NULL is also true for
-- 0000-00-00. MariaDB puts this value into the rows when Spring's script adds the column.
UPDATE {prefix}LOCK
SET EXPIRED_AFTER = TIMESTAMPADD(MICROSECOND, {ttl}, GREATEST(UTC_TIMESTAMP(6), CREATED_DATE))
WHERE EXPIRED_AFTER IS NULL;

-- With a default, Spring 6 could go on inserting rows, which others would treat as
-- expired: two processes could hold the lock. Without a default, its INSERT fails.
ALTER TABLE {prefix}LOCK MODIFY COLUMN EXPIRED_AFTER DATETIME(6) NOT NULL;
