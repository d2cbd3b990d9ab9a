-- The source of fencing tokens. Spring does not use it. On MariaDB it is a sequence, from which the
-- statement that acquires draws. It has no cache, so that each number is in the redo log and in
-- the binary log no later than the row that it was drawn for. After a crash, and on a replica that is
-- promoted, it goes on above all of them.
--
-- It is a table on MySQL, on Galera (where each node would count by itself), with
-- binlog_format=STATEMENT (which has no sequences), and on versions before May 2023 (whose replicas may
-- set a sequence back, MDEV-29621). There the first three statements do nothing.
SET @sqllock_fence = 'DO 0' /*M!100613 , @sqllock_fence = (SELECT IF(
	VERSION() REGEXP '^10[.]([789]|10|11[.][0-2])([.]|-)'
	OR @@GLOBAL.binlog_format = 'STATEMENT'
	OR EXISTS (SELECT 1 FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME = 'WSREP_ON' AND VARIABLE_VALUE = 'ON'),
	'DO 0',
	'CREATE SEQUENCE IF NOT EXISTS {prefix}LOCK_FENCE NOCACHE ENGINE=InnoDB')) */;

PREPARE sqllock_fence FROM @sqllock_fence;

EXECUTE sqllock_fence;

-- A sequence has its name among the tables: where there is one, this does nothing.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_FENCE (
	ID BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY
) ENGINE=InnoDB;
