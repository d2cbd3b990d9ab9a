-- A new sequence starts at 1. All tokens that were drawn before are higher than the
-- first tokens of the new sequence.
DROP SEQUENCE IF EXISTS {prefix}LOCK_FENCE;

DROP TABLE IF EXISTS {prefix}LOCK_NAME;
