-- A new sequence starts at 1. All tokens that were drawn before are higher than the
-- first tokens of the new sequence.
DROP SEQUENCE IF EXISTS {prefix}LOCK_FENCE;

-- The table of names is made first if it is missing: DROP alone would find that of a later schema of the search path.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_NAME (ID VARCHAR(44));

DROP TABLE {prefix}LOCK_NAME;
