package server

import "syscall"

// A recipe describes how to run one kind of server. Commands are argument lists that begin
// with the path of the program. dir is the absolute path of the server's directory.
type recipe struct {
	// name is used in messages and names the log file.
	name string
	// driver is the database/sql driver that understands dsn. A server is
	// ready when a ping through it succeeds.
	driver string
	// account is the account as which the server runs; nil means the caller's.
	account *account
	// files are written into dir before all commands; nil for none.
	files func(port int) map[string]string
	// create creates the data directory; nil for a server without data.
	create func(dir string) []string
	// serve runs the server in the foreground.
	serve func(dir string, port int) []string
	// dsn is the DSN for clients.
	dsn func(port int) string
	// quit ends the server cleanly, without waiting for its clients to leave.
	quit syscall.Signal
	// orphaned is the signal that the kernel sends when the parent dies. It must end the
	// server quickly without leaving child processes or shared memory behind.
	orphaned syscall.Signal
}
