package measure

import (
	"context"
	"strings"
	"sync"

	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/internal/seatkey"
	"github.com/sqllock/sqllock/observe"
)

// Instruments are those of a library. Each is called with the values of its labels: the one that is named
// below, and the name of the lock if there are names.
type Instruments struct {
	Acquired func(ctx context.Context, seconds float64, labels ...string) // outcome
	Held     func(ctx context.Context, seconds float64, labels ...string) // end
	Renewed  func(ctx context.Context, seconds float64, labels ...string) // outcome, and no name of a lock
	Lost     func(ctx context.Context, n int, labels ...string)           // reason
	Leases   func(ctx context.Context, n int, labels ...string)
	Waiters  func(ctx context.Context, n int, labels ...string)
}

// Metrics use instruments as a registry tells what happens. They are safe for concurrent use.
type Metrics struct {
	Instruments
	Lock      func(key string) string // returns the name of a lock, never of one of its permits or readers; nil if there are no names
	Left      LeastLeft
	Waits     Oldest // those of callers that stand by are not among them
	Holds     Oldest // nor those of leaders
	Elections Elections
	Jobs      Jobs

	begun sync.Map // the names that Begin was called for
}

// Begin makes the series whose labels are known, with the name of a lock if there are names, so that
// an increase from 0 is seen.
func (m *Metrics) Begin(ctx context.Context, name ...string) {
	m.Leases(ctx, 0, name...)
	m.Waiters(ctx, 0, name...)
	m.Waits.Know(strings.Join(name, ""))
	m.Holds.Know(strings.Join(name, ""))
	for _, reason := range Losses {
		m.Lost(ctx, 0, append([]string{string(reason)}, name...)...)
	}
}

// labels returns the values of a metric about the lock of key, in an event of ctx.
func (m *Metrics) labels(ctx context.Context, key string, values ...string) []string {
	if m.Lock != nil {
		values = append(values, Text(m.Lock(report.LockOf(ctx, key))))
	}
	return values
}

// name returns the name of the lock of key, or "" if there are no names.
func (m *Metrics) name(ctx context.Context, key string) string {
	return strings.Join(m.labels(ctx, key), "")
}

// Acquire notes a call that asks for a lock, and the function that it returns what came of it.
func (m *Metrics) Acquire(ctx context.Context, e observe.AcquireStart) func(observe.AcquireEnd) {
	if m.Lock != nil {
		name := m.name(ctx, e.Key)
		if _, begun := m.begun.LoadOrStore(name, nil); !begun {
			m.Begin(ctx, name)
		}
	}
	waits := report.Waits(ctx, e)
	wait := m.beginWait(ctx, e.Key, waits)
	return func(e observe.AcquireEnd) {
		inTurn := e.Err == nil && !e.Reentered && seatkey.IsTurn(e.Key)
		switch {
		case waits && inTurn: // and waits on, for a permit or for readers, until it releases the turn
			m.Waits.EndsWith(e.Holder, wait)
		case waits:
			m.Waits.End(m.name(ctx, e.Key), wait)
			m.Waiters(ctx, -1, m.labels(ctx, e.Key)...)
		}
		if e.Reentered {
			return
		}
		if !e.StandsBy || e.Outcome == observe.OutcomeError { // the wait of one that stands by says nothing
			m.Acquired(ctx, e.Took.Seconds(), m.labels(ctx, e.Key, string(e.Outcome))...)
		}
		if e.Err != nil {
			return
		}
		if e.AutoRenew {
			m.Left.Begin()
		}
		if inTurn {
			return
		}
		m.Leases(ctx, 1, m.labels(ctx, e.Key)...)
		if !e.StandsBy {
			m.Holds.EndsWith(e.Holder, m.Holds.Begin(m.name(ctx, e.Key)))
		}
	}
}

// beginWait notes a caller that waits, if it does, and returns the number of the wait.
func (m *Metrics) beginWait(ctx context.Context, key string, waits bool) (number uint64) {
	if !waits {
		return 0
	}
	m.Waiters(ctx, 1, m.labels(ctx, key)...)
	return m.Waits.Begin(m.name(ctx, key))
}

// LeaseEnd implements observe.Observer's LeaseEnd.
func (m *Metrics) LeaseEnd(ctx context.Context, e observe.LeaseEnd) {
	if e.AutoRenew {
		m.Left.End()
	}
	if seatkey.IsTurn(e.Key) { // a wait has ended
		if m.Waits.LeaseEnd(m.name(ctx, e.Key), e.Holder) {
			m.Waiters(ctx, -1, m.labels(ctx, e.Key)...)
		}
		return
	}
	if e.Reason.Lost() {
		m.Lost(ctx, 1, m.labels(ctx, e.Key, string(e.Reason))...)
	}
	m.Held(ctx, e.Held.Seconds(), m.labels(ctx, e.Key, End(e.Reason))...)
	m.Leases(ctx, -1, m.labels(ctx, e.Key)...)
	m.Holds.LeaseEnd(m.name(ctx, e.Key), e.Holder)
}

// Renewal implements observe.Observer's Renewal.
func (m *Metrics) Renewal(ctx context.Context, e observe.Renewal) {
	m.Renewed(ctx, e.Took.Seconds(), Renewal(e.Err))
	m.Left.Set(e.Left.Seconds() / e.TTL.Seconds())
}
