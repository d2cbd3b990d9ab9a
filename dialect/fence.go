package dialect

// Databases without sequences take fencing tokens from a table whose rows are numbered
// automatically. A number is never used twice, even if its row was deleted or rolled
// back. drawFromTable reads the lock's row, which the transaction has written before, so
// only the holder gets a token.
const (
	drawFromTable    = "INSERT INTO {fence} (ID) SELECT NULL FROM {table} WHERE {row} AND CLIENT_ID = :holder"
	drawOneFromTable = "INSERT INTO {fence} (ID) VALUES (NULL)"
	fenceTable       = "SELECT * FROM {fence} WHERE 1 = 0"
	trimTable        = "DELETE FROM {fence} WHERE ID < :token"
)
