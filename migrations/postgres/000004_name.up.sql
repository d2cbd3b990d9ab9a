-- The table of version 2, for tables that had that version before it had this one.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_NAME (
	ID VARCHAR(44) COLLATE "C" NOT NULL,
	REGION VARCHAR(100) COLLATE "C" NOT NULL,
	NAME VARCHAR(1000) NOT NULL,
	SEEN TIMESTAMP NOT NULL,
	CONSTRAINT {unqualified}LOCK_NAME_PK PRIMARY KEY (ID, REGION)
);

-- Old names are found by it.
CREATE INDEX IF NOT EXISTS {unqualified}LOCK_NAME_SEEN ON {prefix}LOCK_NAME (SEEN);
