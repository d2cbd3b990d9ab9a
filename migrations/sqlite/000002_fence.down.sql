-- A new table starts at 1. All tokens that were drawn before are higher than the first
-- tokens of the new table.
DROP TABLE IF EXISTS {prefix}LOCK_FENCE;

-- The table of names is made first if it is missing: DROP alone would find that of an attached file.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_NAME (ID VARCHAR(44));

DROP TABLE {prefix}LOCK_NAME;
