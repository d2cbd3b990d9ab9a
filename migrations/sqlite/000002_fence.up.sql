-- The source of fencing tokens, because SQLite has no sequences. AUTOINCREMENT never
-- assigns a number twice, even if its row was deleted.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_FENCE (
	ID INTEGER PRIMARY KEY AUTOINCREMENT
);
