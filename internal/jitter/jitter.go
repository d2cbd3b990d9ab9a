// Package jitter has what makes a schedule random: the numbers that decide when something
// happens, and the scheduler's choice of which goroutine runs next. They are in one place so that
// a simulation can repeat them.
package jitter

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
)

// source, if set, is where a test has the numbers come from.
var source atomic.Pointer[func(n int64) int64]

// N returns a random number from 0 to n-1. It panics if n is not positive. It is safe for
// concurrent use.
func N[T ~int64](n T) T {
	if from := source.Load(); from != nil {
		return T((*from)(int64(n)))
	}
	return rand.N(n)
}

// Replace makes from the source of all numbers of this process, until restore is called. It is
// for tests that must have the same numbers again. from must be safe for concurrent use.
func Replace(from func(n int64) int64) (restore func()) {
	before := source.Swap(&from)
	return func() { source.Store(before) }
}

// yield, if set, is what a test does in place of runtime.Gosched.
var yield atomic.Pointer[func()]

// Yield lets other goroutines run that are ready.
func Yield() {
	if other := yield.Load(); other != nil {
		(*other)()
		return
	}
	runtime.Gosched()
}

// ReplaceYield replaces what Yield does, until restore is called. It is for tests in which all
// goroutines that are ready must run first, and not only some.
func ReplaceYield(other func()) (restore func()) {
	before := yield.Swap(&other)
	return func() { yield.Store(before) }
}
