-- The column of Spring Integration 7. SQLite adds a NOT NULL column only with a default,
-- and cannot make a column NOT NULL.
-- With a default, Spring 6 could go on inserting rows, which others would treat as
-- expired: two processes could hold the lock. So the table is copied.
-- if EXPIRED_AFTER is missing or may be NULL
CREATE TABLE {prefix}LOCK_NEW (
	LOCK_KEY CHAR(36) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	CLIENT_ID CHAR(36),
	CREATED_DATE TIMESTAMP NOT NULL,
	EXPIRED_AFTER TIMESTAMP NOT NULL,
	CONSTRAINT {unqualified}LOCK_PK PRIMARY KEY (LOCK_KEY, REGION)
);

-- Only the holders of existing leases know when these end. So they last for a whole
-- time-to-live (in microseconds) from now. A lock that stays taken for a minimum hold has a
-- CREATED_DATE of later than now.
-- if EXPIRED_AFTER is missing
INSERT INTO {prefix}LOCK_NEW
SELECT LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
	datetime(MAX(datetime('now', 'subsec'), CREATED_DATE), 'subsec', printf('%.6f seconds', {ttl} / 1000000.0))
FROM {prefix}LOCK;

-- if EXPIRED_AFTER may be NULL
INSERT INTO {prefix}LOCK_NEW
SELECT LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE,
	COALESCE(EXPIRED_AFTER, datetime('now', 'subsec', printf('%.6f seconds', {ttl} / 1000000.0)))
FROM {prefix}LOCK;

-- if EXPIRED_AFTER is missing or may be NULL
DROP TABLE {prefix}LOCK;

-- if EXPIRED_AFTER is missing or may be NULL
ALTER TABLE {prefix}LOCK_NEW RENAME TO {unqualified}LOCK;
