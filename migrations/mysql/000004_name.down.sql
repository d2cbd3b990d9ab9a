-- Nothing depends on it.
DROP TABLE IF EXISTS {prefix}LOCK_NAME;
