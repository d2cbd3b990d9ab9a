// Package jitter has the random numbers that decide when something happens.
package jitter

import "math/rand/v2"

// N returns a random number from 0 to n-1. It panics if n is not positive. It is safe for
// concurrent use.
func N[T ~int64](n T) T {
	return rand.N(n)
}
