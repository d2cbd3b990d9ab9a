// Package spring shows that sqllock and Spring Integration's own lock registry
// share a table. It holds a small Maven project whose program drives the real
// JdbcLockRegistry and DefaultLockRepository by lines on stdin; package javaclient
// builds and drives that program. The tests run Java and Go clients on one
// PostgreSQL and one MariaDB:
//
//	make test-interop
//
// They have the build tag interop, since they need a JDK, Maven and, the first
// time, the network.
package spring

import "embed"

// Project is the Maven project: pom.xml and src. It is embedded, so that another
// module that imports javaclient needs no checkout.
//
//go:embed pom.xml src
var Project embed.FS
