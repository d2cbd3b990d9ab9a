package migrations

import (
	"context"
	"time"
)

const (
	// migrationWait is how long a migration waits for another one.
	migrationWait = time.Minute
	// tableWait is how long a statement waits for the lock table. Meanwhile all other
	// statements on the table queue up behind it, so leases cannot be renewed and may
	// expire.
	tableWait = 5 * time.Second
)

// A flavour describes how databases differ, apart from the files. table.fill replaces
// {table}, {schema} and {name} in its texts.
type flavour struct {
	// columns returns the names of a table's columns, and whether each may be NULL.
	columns string
	// probe, if not empty, fails if there is no table, or no right to read it: columns returns
	// nothing in both cases.
	probe string
	// apart, if not empty, returns the name of one of the tables that statements find elsewhere than new ones are made,
	// where it is, and where they are made. It returns no row if there is none. The table of names does not count: nothing
	// depends on it, and the steps make and drop only that of the schema in which tables are made.
	apart string
	// bookkeeping creates the bookkeeping table in golang-migrate's format.
	bookkeeping string
	// write sets the version in the bookkeeping table to {version}.
	write []string
	// freeze, if not empty, locks the table exclusively until the transaction ends.
	freeze string
	// lock makes other migrations of the same tables wait until unlock, undo or the end
	// of the connection. It returns ErrBusy after migrationWait.
	lock func(context.Context, *session) error
	// unlock commits the changes. If it returns an error, undo must follow.
	unlock func(context.Context, *session) error
	// undo rolls back all changes since lock that the database can roll back. lock
	// itself may have failed half-way.
	undo func(context.Context, *session) error
}

var flavours = map[string]flavour{
	"postgres": postgres,
	"mysql":    mysql,
	"sqlite":   sqlite,
}

const createBookkeeping = "CREATE TABLE IF NOT EXISTS {table} (version BIGINT NOT NULL PRIMARY KEY, dirty BOOLEAN NOT NULL)"

var writeVersion = []string{"DELETE FROM {table}", "INSERT INTO {table} (version, dirty) VALUES ({version}, FALSE)"}
