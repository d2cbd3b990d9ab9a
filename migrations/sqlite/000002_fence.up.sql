-- Where fencing tokens are drawn from: SQLite has no sequences. AUTOINCREMENT
-- never gives a number twice, even if its row has gone.
CREATE TABLE IF NOT EXISTS {prefix}LOCK_FENCE (
	ID INTEGER PRIMARY KEY AUTOINCREMENT
);
