// Package server runs real database servers for tests: private, throw-away
// ones on free ports of 127.0.0.1, with their data in a directory that the
// caller gives. What is not installed is installed from Debian's packages when
// the process may do that (as root), else the error says what to install.
//
// The servers trade durability for speed: they survive the SIGKILL of [Server.Kill], but
// not a crash of the machine.
//
// No server outlives the process that started it, however that process ends:
// the kernel signals the server when its parent dies. A server sits in a process
// group of its own, so that a Ctrl-C meant for the tests does not reach it
// before they have cleaned up after themselves.
//
// A kind of server is a [recipe]: a value that says how to make its data
// directory, how to run it in the foreground and how to connect. Another kind
// is another recipe, in a file of its own.
//
// What Debian's stable packages do not have is fetched once a machine into
// sqllock-dbtest in the user's cache directory, and runs from there.
//
// Servers are started on Linux only. Elsewhere, tests use servers that the
// developer runs: see [PostgresVariable] and those beside it.
package server
