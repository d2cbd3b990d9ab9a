package page

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/printable"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/internal/runs"
	"github.com/sqllock/sqllock/internal/seatkey"
)

const (
	// pace is the shortest time between two statements.
	pace = time.Second
	// share is how many times longer than a statement the pause after it is.
	share = 10
	// answerTimeout ends a statement.
	answerTimeout = 10 * time.Second
	// patience is how long a viewer waits before it gets what was read before.
	patience = 3 * time.Second
)

// A snapshot is what one statement has read, and what this process holds and waits for.
type snapshot struct {
	at      time.Time // when it was read; zero if nothing was read yet
	locks   []listing.Lock
	more    bool  // there are more rows
	err     error // of the last statement; then the rest is older
	here    map[rowID]sqllock.Held
	waiting map[string]waiters // by LOCK_KEY
	callers int                // that wait
	runs    []runs.Run         // of jobs
	runsAt  time.Time          // when these were read
	waits   []sqllock.Waiter   // of all processes
	waitsOf listing.Waiters    // the same, by lock
}

// passed returns by how much the times of what was read have moved, or 0 if that is not known.
func (s snapshot) passed() time.Duration {
	if s.at.IsZero() || s.err != nil {
		return 0
	}
	return time.Since(s.at)
}

type rowID struct{ lockKey, holder string }

// waiters are the callers of this process that wait for a key.
type waiters struct {
	key   string
	count int
}

// A reader reads the table for all viewers.
type reader struct {
	registry *sqllock.Registry
	limit    int
	names    map[string]string // keys that the host has named, by LOCK_KEY
	keys     *strings.Replacer // of these LOCK_KEYs, in the keys of permits and readers

	mu      sync.Mutex
	last    snapshot
	fresh   time.Time     // until when last is recent enough
	next    time.Time     // when the next statement may be sent, of whichever kind
	reading chan struct{} // closed at the end of the statement under way; nil if there is none
	bars    listing.Bars
	seen    map[string]string // the keys of rows that were read, by LOCK_KEY

	runs             []runs.Run
	runsAt, runsNext time.Time // when they were read, and may be read again
}

func newReader(registry *sqllock.Registry, o Options) *reader {
	r := &reader{registry: registry, limit: o.Limit, names: make(map[string]string)}
	for _, key := range append(o.Roles[:len(o.Roles):len(o.Roles)], o.Names...) {
		r.name(r.names, key)
	}
	for key, permits := range o.Permits {
		lockKey := r.name(r.names, key)
		for i := range permits {
			r.name(r.names, seatkey.Seat(lockKey, seatkey.Permit, i))
		}
	}
	var keys []string
	for lockKey, key := range r.names {
		keys = append(keys, lockKey, printable.Text(key))
	}
	r.keys = strings.NewReplacer(keys...)
	return r
}

// name adds a key to names. One that the registry does not take is in no row either.
func (r *reader) name(names map[string]string, key string) (lockKey string) {
	lockKey, err := r.registry.Repository().LockKey(key)
	if err != nil {
		return ""
	}
	names[lockKey] = key
	return lockKey
}

// nameIn has keys of permits and readers begin with the key of their lock, where the host has named that.
func (r *reader) nameIn(events []event) {
	for i := range events {
		events[i].Key = r.keys.Replace(events[i].Key)
	}
}

// read returns what the table contains. If it was read less than a second ago, that is what
// it returns. The first viewer after that sends a statement, and all wait for its answer. If it
// takes longer than patience they get what was read before.
func (r *reader) read(ctx context.Context) snapshot {
	r.mu.Lock()
	if r.reading == nil && !time.Now().Before(r.fresh) {
		r.reading = make(chan struct{})
		go r.send(r.turn()) //nolint:contextcheck // it belongs to no viewer
	}
	reading, known := r.reading, !r.last.at.IsZero()
	r.mu.Unlock()
	if reading != nil {
		await(ctx, reading, known)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// await waits until reading is closed, for a limited time if there is something to show.
func await(ctx context.Context, reading <-chan struct{}, known bool) {
	if known {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = limited
	}
	select {
	case <-reading:
	case <-ctx.Done():
	}
}

// send sends a statement when its turn has come, and keeps its answer. It belongs to no viewer, so
// none can end it.
func (r *reader) send(turn time.Duration) {
	time.Sleep(turn)
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	rows, err := r.registry.Repository().ListFirst(ctx, r.limit+1)
	if at := time.Now(); err == nil {
		r.readRuns(ctx)
		r.keep(ctx, rows, r.registry.Repository().Waiters(ctx), at)
	}
	answered := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: no answer for %v", sqllock.ErrDatabase, answerTimeout)
	}
	r.last.err = err
	r.fresh = latest(began.Add(pace), answered.Add(share*answered.Sub(began)))
	close(r.reading)
	r.reading = nil
}

// keep makes rows the last snapshot. Only one goroutine calls it at a time.
func (r *reader) keep(ctx context.Context, rows []sqllock.Row, waits []sqllock.Waiter, at time.Time) {
	s := snapshot{at: at, waits: waits, waitsOf: listing.WaitersOf(waits), here: make(map[rowID]sqllock.Held), waiting: make(map[string]waiters)}
	if s.more = len(rows) > r.limit; s.more {
		rows = rows[:r.limit]
	}
	s.runs, s.runsAt = r.runs, r.runsAt
	names := maps.Clone(r.names)
	for _, row := range rows {
		if key, ok := r.seen[row.LockKey]; ok { // it may have been held here, and be another's now
			names[row.LockKey] = key
		}
	}
	for _, held := range r.registry.Held() {
		lockKey := r.name(names, held.Key)
		if !seatkey.IsTurn(held.Key) { // the turn is that of a caller that waits
			s.here[rowID{lockKey, held.Holder}] = held
		}
	}
	for _, w := range report.TrackerOf(r.registry).Long(0) {
		s.waiting[r.name(names, w.Key)] = waiters{w.Key, w.Callers}
		s.callers += w.Callers
	}
	s.locks, r.seen = listing.Named(rows, names), names
	for i, l := range listing.Named(rows, r.names) {
		s.locks[i].Seat.Total = l.Seat.Total // names has some permits of a semaphore, but not always all
	}
	listing.ReadTTLs(ctx, r.registry.Repository(), s.locks)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bars.Fill(s.locks)
	r.last = s
}

// errBusy is returned to a viewer who would have to wait for too long.
var errBusy = errors.New("too many viewers search: try again in a moment")

// expire makes the next viewer read again: the table has changed.
func (r *reader) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fresh = time.Time{}
}

// find reads the row of a key, as one of the statements of that second.
func (r *reader) find(ctx context.Context, key string) (lock listing.Lock, ok bool, err error) {
	repository := r.registry.Repository()
	if _, err := repository.LockKey(key); err != nil {
		return lock, false, nil // no lock has such a key
	}
	r.mu.Lock()
	if time.Until(r.next) > patience {
		r.mu.Unlock()
		return lock, false, errBusy
	}
	turn := time.NewTimer(r.turn())
	r.mu.Unlock()
	defer turn.Stop()
	select {
	case <-turn.C:
	case <-ctx.Done():
		return lock, false, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	row, ok, err := repository.Peek(ctx, key)
	if err != nil || !ok {
		return lock, false, err
	}
	found := listing.Named([]sqllock.Row{row}, map[string]string{row.LockKey: key})
	new(listing.Bars).Fill(found)
	return found[0], true, nil
}

// turn returns how long a statement has to wait for its turn. The caller holds r.mu.
func (r *reader) turn() time.Duration {
	now := time.Now()
	at := latest(now, r.next)
	r.next = at.Add(pace)
	return at.Sub(now)
}

func latest(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
