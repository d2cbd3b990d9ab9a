package server

import "syscall"

// A recipe says how to run one kind of server. The commands are
// argument lists whose first element is the program's path; dir is the
// server's directory, an absolute path.
type recipe struct {
	// name is used in messages and names the log file.
	name string
	// driver is the database/sql driver that understands dsn. A server is
	// ready when a ping through it succeeds.
	driver string
	// account is who the server runs as; nil means the caller.
	account *account
	// files are written into dir before anything else runs; nil for none.
	files func(port int) map[string]string
	// create makes the data directory, once; nil for a server without data.
	create func(dir string) []string
	// serve runs the server in the foreground.
	serve func(dir string, port int) []string
	// dsn is where a client finds the server.
	dsn func(port int) string
	// quit ends the server cleanly, without waiting for its clients to leave.
	quit syscall.Signal
	// orphaned is what the kernel sends when the parent dies: the quickest end
	// that leaves no child process and no shared memory behind.
	orphaned syscall.Signal
}
