DROP TABLE IF EXISTS {prefix}LOCK;

-- Version 1 is recorded before the step back to it drops these tables.
DROP TABLE IF EXISTS {prefix}LOCK_FENCE;

DROP TABLE IF EXISTS {prefix}LOCK_NAME;
