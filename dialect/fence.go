package dialect

// Where there are no sequences, tokens are the numbers that a table gives to its
// rows, which never come twice even if the rows have gone or were rolled back.
// The statement reads the lock's row, which the transaction has written before, so
// that it draws for its holder alone.
const (
	drawFromTable    = "INSERT INTO {fence} (ID) SELECT NULL FROM {table} WHERE {row} AND CLIENT_ID = :holder"
	drawOneFromTable = "INSERT INTO {fence} (ID) VALUES (NULL)"
	trimTable        = "DELETE FROM {fence} WHERE ID < :token"
)
