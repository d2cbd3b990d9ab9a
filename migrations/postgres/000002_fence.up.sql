-- The source of fencing tokens. Spring does not use it.
CREATE SEQUENCE IF NOT EXISTS {prefix}LOCK_FENCE;

-- The names of keys and of the processes that hold them. ID is 'key:' and a LOCK_KEY, or 'process:' and
-- the part of CLIENT_ID that all acquisitions of a client share. docs/schema.md has the other kinds of row.
-- SEEN is when the row was last written. Nothing depends on this table: without it, tools show LOCK_KEY and CLIENT_ID
-- alone. Spring does not use it.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_NAME (
	ID VARCHAR(44) COLLATE "C" NOT NULL,
	REGION VARCHAR(100) COLLATE "C" NOT NULL,
	NAME VARCHAR(1000) NOT NULL,
	SEEN TIMESTAMP NOT NULL,
	CONSTRAINT {unqualified}LOCK_NAME_PK PRIMARY KEY (ID, REGION)
);

-- Old names are found by it.
CREATE INDEX IF NOT EXISTS {unqualified}LOCK_NAME_SEEN ON {prefix}LOCK_NAME (SEEN);
