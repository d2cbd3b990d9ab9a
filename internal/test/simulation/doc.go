// Package simulation runs the library over a real SQLite in virtual time, in worlds that a
// seed determines.
package simulation
