-- The source of fencing tokens. Spring does not use it.
CREATE SEQUENCE IF NOT EXISTS {prefix}LOCK_FENCE;
