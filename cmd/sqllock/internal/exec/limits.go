package exec

import (
	"context"
	"math"
	"time"

	"github.com/sqllock/sqllock/internal/engine"
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

// A term is what limits need to know of a lease.
type term interface {
	Context() context.Context
	Deadline() time.Time
}

// limitsOf returns the limits of a command under a lease. They lie between the end of the lease and
// that of its row, so that exec normally acts first.
func (x *execution) limitsOf(lease term) limits {
	late := engine.Margin(x.ttl) / 2
	l, took := limitsAt(now(), lease, x.grace, late)
	for try := 1; took > late/10 && try < limitTries; try++ {
		l, took = limitsAt(now(), lease, x.grace, late)
	}
	return l
}

// limitTries is how often limits are computed at most until they are exact.
const limitTries = 10

// limitsAt returns the limits of a command whose lease is read at clock or later, and how much later at
// most. If this process stands still now, the limits are early by that.
func limitsAt(clock instant, lease term, grace, late time.Duration) (l limits, took time.Duration) {
	if lease.Context().Err() != nil { // exec has told the command to end
		l = limits{never, clock.after(grace).after(late)}
	} else {
		end := clock.after(time.Until(lease.Deadline())).after(late)
		l = limits{end, end.after(grace)}
	}
	return l, time.Duration(now() - clock)
}
