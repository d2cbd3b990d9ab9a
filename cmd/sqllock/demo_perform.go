package main

import (
	"context"
	"fmt"
	"time"
)

// demoPatience is how long the demo waits for a round to be finished, besides
// the time-to-live that a take-over takes.
const demoPatience = 20 * time.Second

// frame is the time between two redraws, and what one column of the panel
// stands for.
const frame = 100 * time.Millisecond

// A director hands out the rounds.
type director struct {
	*demo
	stage  *stage
	troupe *troupe
	record *record
	begun  time.Time
	given  int           // rounds handed out and not lost with the killed worker
	victim *demoWorker   // who was ordered to take the lock and hang
	idle   []*demoWorker // who asked for an order in vain
}

// perform lets the workers work until all rounds are done.
func (d *demo) perform(ctx context.Context, s *stage, r *record, v view) error {
	t, err := d.startTroupe(s)
	if err != nil {
		return err
	}
	defer t.dismiss()
	x := &director{demo: d, stage: s, troupe: t, record: r}
	r.enlist(t.workers)
	redraw := time.NewTicker(frame)
	defer redraw.Stop()
	patience := time.NewTimer(d.ttl + demoPatience)
	defer patience.Stop()
	for !x.over() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-patience.C:
			return fmt.Errorf("no round was finished within %v", d.ttl+demoPatience)
		case <-redraw.C:
			v.draw(time.Now())
		case e := <-t.events:
			if err := x.hear(e); err != nil {
				return err
			}
			if err := v.show(e); err != nil {
				return fmt.Errorf("show what happens: %w", err)
			}
			if e.Kind == demoFinished {
				patience.Reset(d.ttl + demoPatience)
			}
		}
	}
	return nil
}

// hear reacts to an event.
func (x *director) hear(e demoEvent) (err error) {
	x.record.note(e)
	switch e.Kind {
	case demoFinished:
		if x.record.counter, err = readCounter(x.stage.counter()); err != nil {
			return err
		}
	case demoReady:
		x.idle = append(x.idle, e.worker)
	case demoHanging:
		at := time.Now()
		e.worker.kill()
		x.record.noteKill(e, at)
		x.given-- // somebody else has to do this round
	case demoEnded:
		if !e.worker.killed {
			return e.worker.failure()
		}
	case demoWaiting, demoEntered:
	}
	x.giveOrders()
	return nil
}

// giveOrders hands out rounds to the idle. The first are given when all workers
// are there, so that nobody is done before others have begun.
func (x *director) giveOrders() {
	if x.begun.IsZero() {
		if len(x.idle) < len(x.troupe.workers) {
			return
		}
		x.begun = time.Now()
		x.record.begin(x.begun)
	}
	for len(x.idle) > 0 && x.more() {
		w := x.idle[0]
		x.idle = x.idle[1:]
		x.given++
		if x.victim == nil && x.timeToKill() {
			x.victim = w
			w.order(orderHang)
			continue
		}
		w.order(orderWork)
	}
}

// more tells whether there are rounds to hand out. Without somebody who waits
// there would be no take-over.
func (x *director) more() bool {
	if x.duration == 0 {
		return x.given < x.rounds
	}
	return time.Since(x.begun) < x.duration || x.mustKill() && x.record.takeover == nil
}

// timeToKill tells whether a third of the demo is over.
func (x *director) timeToKill() bool {
	switch {
	case !x.mustKill():
		return false
	case x.duration != 0:
		return time.Since(x.begun) > x.duration/3
	default:
		return x.record.done >= x.rounds/3
	}
}

// mustKill tells whether one worker dies: the one that would leave a lock behind.
func (x *director) mustKill() bool { return !x.withoutLock }

// over tells whether all rounds are done, and somebody has taken over.
func (x *director) over() bool {
	if x.begun.IsZero() || x.more() || x.record.done < x.given {
		return false
	}
	return !x.mustKill() || x.record.takeover != nil
}
