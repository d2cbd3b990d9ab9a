// Package server runs real database servers for tests, on free ports of 127.0.0.1, with their
// data in a given directory. As root it installs missing servers from Debian's packages;
// otherwise the error says what to install.
//
// The servers trade durability for speed: they survive the SIGKILL of [Server.Kill], but not
// a crash of the machine.
//
// A server never outlives the process that has started it: the kernel signals the server when
// its parent dies. A server runs in a process group of its own, so a Ctrl-C in the terminal
// does not end it before the tests have cleaned up.
//
// A kind of server is a [Recipe]: how to create its data directory, how to run it in the
// foreground and how to connect. Each recipe has a file of its own.
//
// Servers that are not in Debian's stable packages are downloaded once into sqllock-dbtest in
// the user's cache directory.
//
// Servers are started on Linux only. On other systems, the developer starts servers and sets
// variables such as [PostgresVariable].
package server
