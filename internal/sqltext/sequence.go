package sqltext

import "github.com/sqllock/sqllock/dialect"

// WithSequence returns the dialect of a MariaDB whose source of fencing tokens is a sequence. An
// acquisition is then one statement, which returns whose the row is and draws the token.
//
// Package probe calls it where it finds a sequence, but not on Galera: each node counts by itself there, and
// tokens would not rise.
func (d Dialect) WithSequence() Dialect {
	f := d.fragments
	f.acquire, f.acquireAll = make(map[dialect.Layout]string), make(map[dialect.Layout]string)
	for layout := range proposedRow {
		f.acquire[layout] = onDuplicateKey[layout] + returningRow
		f.acquireAll[layout] = onDuplicateKeys[layout] + returningRows
	}
	f.token = "NEXTVAL({fence})"
	f.draw, f.drawOne, f.trim, f.outcome, f.number, f.look = "", "", "", "", "", ""
	f.isolation = sessionIsolation
	d.fragments, d.ReturnsHolder = f, true
	return d
}

// The server evaluates RETURNING for a row that it has just written, or left as it was, and keeps
// locked until the transaction ends. So the tokens of a key are in the order of its holders. A
// refused attempt draws none.
const (
	returningRow  = "\nRETURNING COALESCE(CLIENT_ID, ''), {age}, {left}, IF(CLIENT_ID = :holder, {token}, 0)"
	returningRows = "\nRETURNING LOCK_KEY, COALESCE(CLIENT_ID, ''), IF(CLIENT_ID IN (:holders), {token}, 0)"
)

// sessionIsolation does not show what SET TRANSACTION has set for one transaction. All versions of
// MariaDB know tx_isolation; transaction_isolation is younger. A statement that commits by itself is not
// in_transaction; it is in one that was begun on the session and left open.
const sessionIsolation = "IF(@@SESSION.autocommit AND NOT @@in_transaction, LOWER(@@SESSION.tx_isolation), '" + NotCommitted + "')"

// NotCommitted stands for the isolation of a statement on a session that does not commit it.
const NotCommitted = "not committed"

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
