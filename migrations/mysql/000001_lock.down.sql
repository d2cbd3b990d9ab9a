DROP TABLE IF EXISTS {prefix}LOCK;

-- Version 1 is recorded before the step back to it drops this table.
DROP TABLE IF EXISTS {prefix}LOCK_FENCE;
