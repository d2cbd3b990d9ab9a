package leader

import (
	"context"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
)

// A view is what an elector knows of its role: its own term, and who led when the row was last read.
type view struct {
	repository *sqllock.Repository
	role       string

	mu   sync.Mutex
	term *term  // until its lease is released, or nil
	seen Leader // zero while the term has its lease
	// unreleased is the holder of a term whose row may be left, because it was not released: that row is no leader's.
	unreleased string

	stirred chan struct{} // has a value when a term has begun, ended or was released
}

func newView(repository *sqllock.Repository, role string) *view {
	return &view{repository: repository, role: role, stirred: make(chan struct{}, 1)}
}

// A termKey is the key under which a context that is made from that of a term's lease has the term. Each elector has
// its own.
type termKey struct{ of *view }

// begin notes that a term has begun.
func (v *view) begin(t *term) {
	v.mu.Lock()
	v.term, v.seen, v.unreleased = t, Leader{}, ""
	v.mu.Unlock()
	v.stir()
	context.AfterFunc(t.ctx, v.stir)
	context.AfterFunc(t.lease.Context(), v.stir)
}

// end notes that a term is over.
func (v *view) end(t *term) {
	v.mu.Lock()
	v.term = nil
	if t.result != nil {
		v.unreleased = t.lease.Holder()
	}
	v.mu.Unlock()
	v.stir()
}

// forget forgets who led.
func (v *view) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = Leader{}
}

// current returns the term of this elector, or nil, and who led when the row was last read.
func (v *view) current() (*term, Leader) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.term, v.seen
}

// read reads who leads, apart from a row that this elector could not release.
func (v *view) read(ctx context.Context) (Leader, error) {
	now, err := Current(ctx, v.repository, v.role)
	v.mu.Lock()
	defer v.mu.Unlock()
	if now.Holder == v.unreleased || v.term != nil && now.Holder == v.term.lease.Holder() {
		now = Leader{}
	}
	return now, err
}

// stir makes the goroutine of observe read again at once.
func (v *view) stir() {
	select {
	case v.stirred <- struct{}{}:
	default: // it is about to
	}
}

// look returns who leads, and when to look again at the latest, if every is the time between two reads. If the
// database does not say, it returns who led when the row was last read.
func (v *view) look(ctx context.Context, every time.Duration) (Leader, time.Duration) {
	before, seen := v.current()
	if before.holds() {
		return before.leader(), forever
	}
	now, err := v.read(ctx)
	if err != nil {
		return seen, every
	}
	if t := v.see(now, before); t != before { // it has begun or ended meanwhile
		return t.leader(), 0
	}
	return now, untilNextRead(now, every)
}

// see notes who leads, as the row was read when t was the term. It returns the term that there is now.
func (v *view) see(now Leader, t *term) *term {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.term == t {
		v.seen = now
	}
	return v.term
}

// forever is longer than a program runs.
const forever time.Duration = 1<<63 - 1
