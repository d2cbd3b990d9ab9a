package main

import (
	"time"
)

// renewals returns what tells the user of trouble with the renewals of a lease, once
// when it begins and once when it is over.
func (x *execution) renewals(h *holding) func(leases int, err error) {
	trouble := false
	return func(_ int, err error) {
		switch {
		case err != nil && !trouble:
			x.say("renew %q: %s; trying again while the lease lasts, for %s", x.key, textOf(err), short(h.left()))
		case err == nil && trouble:
			x.say("renewed %q again", x.key)
		}
		trouble = err != nil
	}
}

// left is how long the lease still lasts.
func (h *holding) left() time.Duration {
	for _, held := range h.registry.Held() {
		return time.Until(held.Deadline)
	}
	return 0
}
