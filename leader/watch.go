package leader

import (
	"context"
	"time"
)

// observeUntilCalled keeps seen up to date in the background, and calls OnChange. The function
// that it returns ends that, and waits for the end.
func (e *Elector) observeUntilCalled(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the last term may outlast ctx
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.observe(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// observe looks who leads: at once when something happens to a term of this elector, and by
// reading the row while it has none.
func (e *Elector) observe(ctx context.Context) {
	var last Leader
	report := func(now Leader) {
		if now.Holder != last.Holder && e.opts.OnChange != nil {
			e.opts.OnChange(now)
		}
		last = now
	}
	for ctx.Err() == nil {
		now, pause := e.look(ctx)
		if ctx.Err() == nil {
			report(now)
			e.awaitStir(ctx, pause)
		}
	}
	if last.Me {
		report(Leader{})
	}
}

// forever is longer than a program runs.
const forever time.Duration = 1<<63 - 1

// look returns who leads, and when to look again at the latest. If the database does not say,
// it returns who led when the row was last read.
func (e *Elector) look(ctx context.Context) (Leader, time.Duration) {
	if t := e.currentTerm(); t != nil {
		return t.leader(), forever
	}
	now, err := e.read(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.term != nil: // it has begun meanwhile
		return e.term.leader(), forever
	case err == nil:
		e.seen = now
	}
	return e.seen, untilNextRead(e.seen, e.opts.ObserveEvery)
}

// leader describes this elector as the leader, or none if the term has ended: this elector
// does not lead any more, even if its row is still there.
func (t *term) leader() Leader {
	if t.ctx.Err() != nil {
		return Leader{}
	}
	holder := t.lease.Holder()
	return Leader{
		Client: clientOf(holder), Holder: holder, Age: t.lasted(), Left: time.Until(t.lease.Deadline()), Me: true,
	}
}

// read reads who leads, apart from a row that this elector could not release.
func (e *Elector) read(ctx context.Context) (Leader, error) {
	now, err := Current(ctx, e.registry.Repository(), e.role)
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.Holder == e.unreleased {
		now = Leader{}
	}
	return now, err
}

// stir has observe look again at once.
func (e *Elector) stir() {
	select {
	case e.stirred <- struct{}{}:
	default: // it is about to
	}
}

// awaitStir waits until stir is called, for d at most, or until ctx ends.
func (e *Elector) awaitStir(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-e.stirred:
	case <-timer.C:
	}
}
