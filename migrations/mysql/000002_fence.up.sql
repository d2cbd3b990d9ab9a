-- The source of fencing tokens. Spring does not use it. On MariaDB it is a sequence, from which the
-- statement that acquires draws. It has no cache, so that each number is in the redo log and in
-- the binary log no later than the row that it was drawn for. After a crash, and on a replica that is
-- promoted, it goes on above all of them.
--
-- It is a table on MySQL, on Galera (where each node would count by itself), with
-- binlog_format=STATEMENT (which has no sequences), and on versions before May 2023 (whose replicas may
-- set a sequence back, MDEV-29621). There the first three statements do nothing.
SET @sqllock_fence = 'SELECT 0' /*M!100613 , @sqllock_fence = (SELECT IF(
	VERSION() REGEXP '^10[.]([789]|10|11[.][0-2])([.]|-)'
	OR @@GLOBAL.binlog_format = 'STATEMENT'
	OR EXISTS (SELECT 1 FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME = 'WSREP_ON' AND VARIABLE_VALUE = 'ON'),
	'SELECT 0',
	'CREATE SEQUENCE IF NOT EXISTS {prefix}LOCK_FENCE NOCACHE ENGINE=InnoDB')) */;

PREPARE sqllock_fence FROM @sqllock_fence;

EXECUTE sqllock_fence;

-- A sequence has its name among the tables: where there is one, this does nothing. Only TiDB reads
-- the comment: without that, each of its servers would take numbers from a range of its own.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_FENCE (
	ID BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY
) ENGINE=InnoDB /*T![auto_id_cache] AUTO_ID_CACHE=1 */;

-- The names of keys and of the processes that hold them. ID is 'key:' and a LOCK_KEY, or 'process:' and
-- the part of CLIENT_ID that all acquisitions of a client share. docs/schema.md has the other kinds of row.
-- SEEN is when the row was last written. Nothing depends on this table: without it, tools show LOCK_KEY and CLIENT_ID
-- alone. Spring does not use it.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_NAME (
	ID VARCHAR(44) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	NAME VARCHAR(1000) NOT NULL,
	SEEN DATETIME(6) NOT NULL,
	CONSTRAINT {unqualified}LOCK_NAME_PK PRIMARY KEY (ID, REGION),
	INDEX {unqualified}LOCK_NAME_SEEN (SEEN)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
