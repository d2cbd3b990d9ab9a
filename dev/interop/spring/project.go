// Package spring tests that sqllock and Spring Integration's lock registry can share a table. It
// contains a small Maven project: a program with the real JdbcLockRegistry and
// DefaultLockRepository, which reads requests from its standard input. Package javaclient builds
// and runs that program. The tests run Java and Go clients on PostgreSQL, MariaDB and MySQL:
//
//	make test-interop
//
// They have the build tag interop, since they need a JDK, Maven and, for the first run, the
// network.
package spring

import "embed"

// Project is the Maven project: pom.xml and src. It is embedded, so other modules can use
// javaclient without a checkout.
//
//go:embed pom.xml src
var Project embed.FS
