-- Nothing depends on it.
-- The table of names is made first if it is missing: DROP alone would find that of an attached file.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_NAME (ID VARCHAR(44));

DROP TABLE {prefix}LOCK_NAME;
