// Package reliability tests sqllock's promises under failures: a network that drops all data,
// servers that crash, processes that are stopped or killed, and an exhausted pool.
//
//	go test .                                        a few trials, for CI
//	go test . -full -page=../docs/reliability.md     all trials, and update the page
//
// It is a module of its own because of what the clusters and their checkers need, which users of
// sqllock do not.
package reliability
