package exec

import (
	"context"
	"math"
	"time"
)

// limits are when the watchdog ends a command if exec does not do so itself, because it is stopped or
// stands still.
type limits struct {
	term instant // of SIGTERM, or never
	kill instant // of SIGKILL
}

// An instant is a time of the clock that all processes of this machine share, in nanoseconds.
type instant int64

const never instant = math.MaxInt64

// after returns a later instant.
func (i instant) after(d time.Duration) instant {
	if later := i + instant(d); later > i {
		return later
	}
	return never
}

// reached returns a channel that receives when the instant has come.
func (i instant) reached() <-chan time.Time {
	if i == never {
		return nil
	}
	return time.After(time.Duration(i - now()))
}

// A term is what limits need to know of a lease.
type term interface {
	Context() context.Context
	Deadline() time.Time
}

// limitsOf returns the limits of a command under a lease. They lie between the end of the lease and
// that of its row, so that exec normally acts first.
func (x *execution) limitsOf(lease term) limits {
	clock := now() // before the lease is read: if this process stands still now, the limits are early
	late := min(x.ttl/10, 500*time.Millisecond) / 2
	if lease.Context().Err() != nil { // exec has told the command to end
		return limits{never, clock.after(x.grace).after(late)}
	}
	end := clock.after(time.Until(lease.Deadline())).after(late)
	return limits{end, end.after(x.grace)}
}
