// Package reliability tries sqllock's promises against what breaks locks: a network
// that falls silent, servers that die, processes that are stopped or killed, a
// pool that is exhausted. It has tests only, and is a module of its own, so that
// nobody else needs a TCP proxy that misbehaves.
//
//	go test .                                        small, for CI
//	go test . -full -page=../docs/reliability.md     as in docs/reliability.md
package reliability
