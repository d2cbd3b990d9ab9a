package leader

import (
	"context"
	"time"
)

// observe keeps the view up to date in the background, and calls onChange, which may be nil. The function that it
// returns ends that, and waits for the end.
func (v *view) observe(ctx context.Context, every time.Duration, onChange func(Leader)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the last term may outlast ctx
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.report(ctx, every, onChange)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// report calls onChange until ctx ends: at once when something happens to a term of this elector, and by reading the
// row while it has none.
func (v *view) report(ctx context.Context, every time.Duration, onChange func(Leader)) {
	var last Leader
	changed := func(now Leader) {
		// The row may be read before this elector knows that it is its own.
		if (now.Holder != last.Holder || now.Me != last.Me) && onChange != nil {
			onChange(now)
		}
		last = now
	}
	for ctx.Err() == nil {
		if t, _ := v.current(); last.Me && !t.leads() {
			changed(Leader{}) // before the database is asked, which may take long
		}
		now, pause := v.look(ctx, every)
		if ctx.Err() == nil {
			changed(now)
			v.awaitStir(ctx, pause)
		}
	}
	if last.Me {
		changed(Leader{})
	}
}

// awaitStir waits until stir is called, for d at most, or until ctx ends.
func (v *view) awaitStir(ctx context.Context, d time.Duration) {
	var passed <-chan time.Time
	if d != forever {
		timer := time.NewTimer(d)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-ctx.Done():
	case <-v.stirred:
	case <-passed:
	}
}
