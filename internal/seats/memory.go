package seats

import (
	"context"
	"slices"
	"sync"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/jitter"
)

// A memory is what a process knows of the seats of a set without reading. It may be wrong, and then a caller
// chooses a seat in vain.
type memory struct {
	mu       sync.Mutex
	turnFree bool // the last read of all seats has found it free, and none has found it taken since
	seats    map[string]*seat

	current, next *reading
}

// A seat is what is known of one.
type seat struct {
	trying int             // how many callers of this process are about to lock it
	lease  context.Context // that of the lease of this process; nil if it has none
	others bool            // the last read of all seats has found it held, and not by this process
}

// A reading is a read of the turn that callers wait for.
type reading struct {
	ctx    context.Context //nolint:containedctx // has the values of the first of them; it lives as long as the read
	done   chan struct{}   // closed when the rest is set
	waiter sqllock.Row     // who has the turn; the zero Row if it is free
	err    error
}

func (s *seat) isOurs() bool { return s.trying > 0 || s.lease != nil && s.lease.Err() == nil }

// try notes that a caller of this process is about to lock seats.
func (m *memory) try(keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		m.tryLocked(key)
	}
}

func (m *memory) tryLocked(key string) {
	s, ok := m.seats[key]
	if !ok {
		s = new(seat)
		m.seats[key] = s
	}
	s.trying++
}

// tried notes the end of a try. lease is nil if it got none.
func (m *memory) tried(keys []string, lease *sqllock.Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		s := m.seats[key]
		if s.trying--; lease != nil {
			s.lease, s.others = lease.Context(), false
		}
	}
}

// ended forgets the context of a lease that has ended: its caller's would stay with it.
func (m *memory) ended(lease context.Context, keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if s := m.seats[key]; s.lease == lease {
			s.lease = nil
		}
	}
}

// ours returns the seats that callers of this process have, or are about to lock.
func (m *memory) ours() (keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, s := range m.seats {
		if s.isOurs() {
			keys = append(keys, key)
		}
	}
	return keys
}

// note notes what a read has found. ours are the seats that this process had when it began.
func (m *memory) note(o Occupancy, ours []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, taken := o.Turn()
	m.turnFree = !taken
	for _, key := range o.set.keys {
		_, held := o.held[key]
		s, known := m.seats[key]
		if !known && held {
			s = new(seat)
			m.seats[key] = s
		}
		if s != nil {
			s.others = held && !s.isOurs() && !slices.Contains(ours, key)
		}
	}
}

// guess chooses a seat that may be free, without those of leases that the caller has, and notes a try. ok is false if
// there is none, or if a caller in another process may have the turn.
func (s *Set) guess(without []*sqllock.Lease) (seat string, ok bool) {
	m := &s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.turnFree {
		return "", false
	}
	likely := slices.DeleteFunc(slices.Clone(s.keys), func(key string) bool {
		s, known := m.seats[key]
		return known && (s.others || s.isOurs()) || slices.ContainsFunc(without, func(lease *sqllock.Lease) bool { return slices.Contains(lease.Keys(), key) })
	})
	if len(likely) == 0 {
		return "", false
	}
	seat = likely[jitter.N(int64(len(likely)))]
	m.tryLocked(seat)
	return seat, true
}

// tryGuessed is TryLock of a seat of which guess has noted a try.
func (s *Set) tryGuessed(ctx, waiting context.Context, t Terms, seat string) (*sqllock.Lease, error) {
	defer s.memory.tried([]string{seat}, nil) // also if an observer panics
	return s.TryLock(ctx, waiting, t, seat)
}

// TryAny locks a seat that is likely to be free, while it reads whether a waiter has the turn: then it releases
// the seat, and returns [sqllock.ErrNotAcquired]. known is false if it is not known which seat may be free, or
// if that was held: then nothing is locked.
//
// So a caller that is alone, or whose company is of its own process, waits for one round trip and not for two. A
// waiter in another process is not kept out by callers that come again and again: once the turn was found taken,
// callers read it before they lock.
func (s *Set) TryAny(ctx, waiting context.Context, t Terms, without []*sqllock.Lease) (lease *sqllock.Lease, known bool, err error) {
	seat, ok := s.guess(without)
	if !ok {
		return nil, false, nil
	}
	r := s.readTurn(waiting)
	lease, err = s.tryGuessed(ctx, waiting, t, seat)
	if err != nil {
		if isHeld(err) && waiting.Err() == nil {
			return nil, false, nil
		}
		return nil, true, s.Failed(ctx, waiting, err)
	}
	select {
	case <-r.done:
		err = r.err
	case <-waiting.Done():
		err = context.Cause(waiting)
	}
	switch {
	case err != nil:
		Release(waiting, lease)
		return nil, true, s.Failed(ctx, waiting, err)
	case r.waiter != sqllock.Row{}:
		Release(waiting, lease)
		return nil, true, s.NotAcquired(ctx, r.waiter)
	}
	lease, err = s.Alive(ctx, waiting, lease) // the read may have taken long
	return lease, true, err
}

// readTurn begins to read the turn. Callers that come while a read is in flight share the next one.
func (s *Set) readTurn(ctx context.Context) *reading {
	m := &s.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next == nil {
		m.next = &reading{ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
	}
	r := m.next
	if m.current == nil {
		m.current, m.next = r, nil
		go s.readOn(r)
	}
	return r
}

// readOn reads until no caller waits for a read.
func (s *Set) readOn(r *reading) {
	m := &s.memory
	for r != nil {
		row, _, err := s.registry.Repository().Peek(r.ctx, s.turn) // which has a limit of its own
		m.mu.Lock()
		if r.err = err; !row.Expired() && row != (sqllock.Row{}) && !s.IsLeftover(row) {
			r.waiter, m.turnFree = row, false
		}
		close(r.done)
		m.current, m.next = m.next, nil
		r = m.current
		m.mu.Unlock()
	}
}
