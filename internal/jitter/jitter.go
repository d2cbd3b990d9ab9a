// Package jitter has what makes a schedule random: the numbers that decide when something
// happens, and the scheduler's choice of which goroutine runs next.
package jitter

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
)

// N returns a random number from 0 to n-1. It panics if n is not positive. It is safe for
// concurrent use.
func N[T ~int64](n T) T {
	return rand.N(n)
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
// goroutines that are ready must run first, in an order that does not depend on the past.
func ReplaceYield(other func()) (restore func()) {
	before := yield.Swap(&other)
	return func() { yield.Store(before) }
}
