// Package streak is the rule by which a process leaves a lock to others: for how long its callers may
// have the lock, one after the other, and for how long it then steps back. Both are multiples of the
// interval at which other processes poll: a fixed time would be too short for those that poll seldom.
//
// interval is the registry's IdleBetweenTries.
package streak

import "time"

// Longest returns how long a streak lasts before the process steps back.
func Longest(interval time.Duration) time.Duration { return 10 * interval }

// StepBack returns for how long it does so: another process polls within the interval, and then needs
// a moment to acquire the lock.
func StepBack(interval time.Duration) time.Duration { return interval + interval/2 }
