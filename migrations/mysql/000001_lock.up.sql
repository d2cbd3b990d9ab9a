-- The lock table of Spring Integration 4.3 to 6.x. A table that Spring's script has
-- created is kept. The collation distinguishes 'a' and 'A'. Spring's script leaves this
-- to the server's default.
CREATE TABLE IF NOT EXISTS {prefix}LOCK (
	LOCK_KEY CHAR(36) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	CLIENT_ID CHAR(36),
	CREATED_DATE DATETIME(6) NOT NULL,
	CONSTRAINT {unqualified}LOCK_PK PRIMARY KEY (LOCK_KEY, REGION)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
