-- The lock table of Spring Integration 4.3 to 6.x. A table that Spring's script has
-- created is kept. The order of "C" never changes. That of another collation changes with
-- the operating system, and then an index does not find all of its rows.
CREATE TABLE IF NOT EXISTS {prefix}LOCK (
	LOCK_KEY CHAR(36) COLLATE "C" NOT NULL,
	REGION VARCHAR(100) COLLATE "C" NOT NULL,
	CLIENT_ID CHAR(36),
	CREATED_DATE TIMESTAMP NOT NULL,
	CONSTRAINT {unqualified}LOCK_PK PRIMARY KEY (LOCK_KEY, REGION)
);
