package leader

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/observe"
)

// A term is one lease of the role, from its acquisition until it is released. The context of the lease carries it.
type term struct {
	lease *sqllock.Lease
	ctx   *termContext
	began time.Time

	resigned  func()         // closes resigning
	reports   sync.WaitGroup // calls of observers
	panicked  chan any       // has what one of them has panicked with
	resigning chan struct{}  // closed when Resign is called

	returned chan struct{}             // closed when lead has returned
	lost     atomic.Pointer[time.Time] // when the lease was found to have ended before that
	finished atomic.Bool               // lead has returned before ctx ended
	watching bool                      // watchStuck was called before lead returned
	watched  chan struct{}             // closed when watchStuck has returned
	released chan struct{}             // closed when the lease is released and the view knows it

	// What follows is set before released is closed.
	cause  error // why ctx ended before lead returned, or nil
	result error // of the release
}

func newTerm() *term {
	t := &term{
		returned: make(chan struct{}), watched: make(chan struct{}), released: make(chan struct{}),
		resigning: make(chan struct{}), panicked: make(chan any, 2),
	}
	t.resigned = sync.OnceFunc(func() { close(t.resigning) })
	return t
}

// begin begins the term. Its context ends with ctx, and with its lease, whose context forget ends.
func (t *term) begin(ctx context.Context, lease *sqllock.Lease, forget context.CancelCauseFunc) {
	t.lease, t.began = lease, time.Now()
	t.ctx = newTermContext(ctx, lease, forget)
}

// run calls lead, and releases the lease when lead has ended, by a panic or Goexit too.
func (t *term) run(ctx context.Context, lead func(context.Context, *sqllock.Lease) error, opts *Options, tell *observers) error {
	//nolint:contextcheck // the contexts of the term and of its lease are made from ctx
	notLost := context.AfterFunc(t.lease.Context(), func() { t.watchStuck(opts) })
	ended := func() {}
	defer func() {
		close(t.returned)
		t.watching = !notLost()
		t.release(ctx, func() { ended() })
	}()
	ended = t.report(tell)      //nolint:contextcheck // as above
	return lead(t.ctx, t.lease) //nolint:contextcheck // as above
}

// report reports that t has begun, and its end as soon as its context ends. ended, which is called then at the
// latest, returns when that is done.
func (t *term) report(tell *observers) (ended func()) {
	if len(tell.each) == 0 {
		return func() {}
	}
	e := observe.Election{State: observe.ElectorLeader, Holder: t.lease.Holder(), Token: t.lease.Token()}
	begun := t.call(func() { tell.report(t.ctx, e) })
	t.await(begun)
	end := sync.OnceValue(func() <-chan struct{} {
		e := e
		e.State, e.Led = observe.ElectorCandidate, t.lasted()
		if !t.finished.Load() {
			e.Cause = context.Cause(t.ctx)
		}
		return t.call(func() {
			<-begun
			tell.report(t.ctx, e)
		})
	})
	stop := context.AfterFunc(t.ctx, func() { end() })
	return func() {
		stop()
		t.await(end())
	}
}

// call calls observers in a goroutine of their own. done is closed when they have returned.
func (t *term) call(observers func()) (done <-chan struct{}) {
	ended := make(chan struct{})
	t.reports.Go(func() {
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				t.panicked <- p
			}
		}()
		observers()
	})
	return ended
}

// await waits until observers have returned, and panics if one has. It does not wait if Resign is called: an observer
// that does so waits for the term.
func (t *term) await(done <-chan struct{}) {
	select {
	case <-done:
		t.panicAgain()
	case <-t.resigning:
	}
}

// panicAgain panics with what an observer has panicked with.
func (t *term) panicAgain() {
	select {
	case p := <-t.panicked:
		panic(p)
	default:
	}
}

// release ends the context of the term, reports that, and releases the lease.
func (t *term) release(ctx context.Context, ended func()) {
	defer t.ctx.close()
	defer func() { t.result = t.lease.Unlock(ctx) }() // also if an observer panics
	if t.ctx.Err() != nil {
		t.cause = context.Cause(t.ctx) //nolint:contextcheck // as above
	} else {
		t.finished.Store(true)
	}
	t.ctx.end(nil) // IsLeader returns an error before the row is gone
	ended()
}

// awaitHooks waits until neither OnStuck nor observers are called any more. They may wait for released.
func (t *term) awaitHooks() {
	t.reports.Wait()
	t.panicAgain()
	if t.watching {
		<-t.watched
	}
}

// lasted returns how long ago the term began.
func (t *term) lasted() time.Duration { return time.Since(t.began) }

// holds reports whether t, which may be nil, has its lease.
func (t *term) holds() bool { return t != nil && t.lease.Context().Err() == nil }

// leads reports whether the elector with the term t, which may be nil, leads.
func (t *term) leads() bool { return t != nil && t.ctx.Err() == nil }

// hasReturned reports whether lead has returned.
func (t *term) hasReturned() bool {
	select {
	case <-t.returned:
		return true
	default:
		return false
	}
}

// watchStuck is called when the lease has ended. It calls OnStuck for as long as lead does not return.
func (t *term) watchStuck(opts *Options) {
	defer close(t.watched)
	now := time.Now()
	t.lost.Store(&now)
	if opts.OnStuck == nil {
		return
	}
	next := time.NewTicker(opts.Grace)
	defer next.Stop()
	for {
		select {
		case <-t.returned:
			return
		case <-next.C:
			if since := t.lostFor(); since > 0 { // lead has not returned meanwhile
				opts.OnStuck(since)
			}
		}
	}
}

// lostFor returns how long ago the lease ended before lead returned; 0 means not at all.
func (t *term) lostFor() time.Duration {
	if t.hasReturned() || t.lease.Context().Err() == nil {
		return 0
	}
	// Both are later than the end, or the end itself. After a pause of the process the deadline may have passed long
	// before the end was noticed.
	since := max(0, time.Since(t.lease.Deadline()))
	if noticed := t.lost.Load(); noticed != nil {
		since = max(since, time.Since(*noticed))
	}
	return since
}

// leader describes this elector as the leader, or none if t is nil or its context has ended: this elector does not
// lead any more, even if its row is still there.
func (t *term) leader() Leader {
	if !t.leads() {
		return Leader{}
	}
	holder := t.lease.Holder()
	return Leader{
		Client: clientOf(holder), Holder: holder, Age: t.lasted(), Left: time.Until(t.lease.Deadline()), Me: true,
	}
}
