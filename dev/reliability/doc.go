// Package reliability tests sqllock's promises under failures: a network that drops all data,
// servers that crash, processes that are stopped or killed, and an exhausted pool.
//
//	withservers go -C dev/reliability test .     a few trials, for CI
//	make reliability                             all trials, and update the page
//
// internal/test/README.md says what withservers is.
// It is a module of its own because of what the clusters and their checkers need, which users of
// sqllock do not.
package reliability
