-- The column of Spring Integration 7. MySQL ends a transaction at each ALTER
-- TABLE, so each of these statements may find the work of all three done.
-- when EXPIRED_AFTER is missing
ALTER TABLE {prefix}LOCK ADD COLUMN EXPIRED_AFTER DATETIME(6);

-- When the leases that are there end, only their holders know. They are taken
-- to last for a whole time-to-live (in microseconds) from now. Of a column that
-- is NOT NULL, MySQL takes 0000-00-00 for NULL, which is welcome here: MariaDB
-- puts that into the rows when Spring's own script adds the column.
UPDATE {prefix}LOCK
SET EXPIRED_AFTER = TIMESTAMPADD(MICROSECOND, {ttl}, UTC_TIMESTAMP(6))
WHERE EXPIRED_AFTER IS NULL;

-- With a default, Spring 6 could go on inserting rows, which would look expired
-- to all others: two holders. Without one its insert is refused.
ALTER TABLE {prefix}LOCK MODIFY COLUMN EXPIRED_AFTER DATETIME(6) NOT NULL;
