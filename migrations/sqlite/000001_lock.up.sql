-- The lock table of Spring Integration 4.3 to 6.x. A table that exists is kept.
-- Instants are text in UTC: 2026-01-31 12:00:00.000.
CREATE TABLE IF NOT EXISTS {prefix}LOCK (
	LOCK_KEY CHAR(36) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	CLIENT_ID CHAR(36),
	CREATED_DATE TIMESTAMP NOT NULL,
	CONSTRAINT {unqualified}LOCK_PK PRIMARY KEY (LOCK_KEY, REGION)
);
