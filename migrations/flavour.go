package migrations

import (
	"context"
	"time"
)

const (
	// migrationWait is how long a migration waits for another.
	migrationWait = time.Minute
	// tableWait is how long a statement waits for the lock table. Whatever
	// others do with the table queues up behind it meanwhile, and leases that
	// cannot be renewed run out.
	tableWait = 5 * time.Second
)

// A flavour is what differs between databases besides the files. {table},
// {schema} and {name} in its texts are filled by table.fill.
type flavour struct {
	// columns answers the names of a table's columns.
	columns string
	// bookkeeping creates the bookkeeping table, as golang-migrate does.
	bookkeeping string
	// write replaces the version in it by {version}.
	write []string
	// freeze, if any, keeps others from the table until the transaction ends.
	freeze string
	// lock makes other migrations of the same tables wait, until unlock or undo
	// or the end of the connection. It ends in ErrBusy after migrationWait.
	lock func(context.Context, *session) error
	// unlock makes the changes last. If it gives an error, undo must follow.
	unlock func(context.Context, *session) error
	// undo takes back what the database can take back since lock, which may
	// itself have stopped anywhere.
	undo func(context.Context, *session) error
}

var flavours = map[string]flavour{
	"postgres": postgres,
	"mysql":    mysql,
	"sqlite":   sqlite,
}

const createBookkeeping = "CREATE TABLE IF NOT EXISTS {table} (version BIGINT NOT NULL PRIMARY KEY, dirty BOOLEAN NOT NULL)"

var writeVersion = []string{"DELETE FROM {table}", "INSERT INTO {table} (version, dirty) VALUES ({version}, FALSE)"}
