-- Where fencing tokens are drawn from. Spring does not see it.
CREATE SEQUENCE IF NOT EXISTS {prefix}LOCK_FENCE;
