// Package transaction has transactions that leave no connection behind in an open one.
//
// database/sql puts a connection back into the pool after COMMIT and ROLLBACK, whatever the
// server has answered. A node of Galera that has lost its quorum refuses both (error 1047) and
// leaves the transaction open. Then the next user of the connection gets error 1568, or, worse,
// runs statements in that transaction that succeed and are never committed. So a connection
// whose transaction may not be over is closed here.
package transaction
