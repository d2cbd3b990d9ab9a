package simulation

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
)

// A World is a database and the processes that share it. It lives in a synctest bubble.
type World struct {
	plan    Plan
	dir     string
	keys    []string          // as callers write them
	names   map[string]string // of LOCK_KEYs
	history history
	witness *witness
	wakers  wakers
	// requests are for the goroutine of the database.
	requests chan func()
	// writer has a value while a connection may write.
	writer chan struct{}
	// resting has a value while a process waits for all others to rest.
	resting chan struct{}

	random *source // for faults that last, and for wake-ups

	mu         sync.Mutex
	path       string // of the database's file
	generation int
	observer   *session
	aliases    map[string]string // of holders
	numbers    map[string]int    // of holders, by client
	violation  *Violation
	slowAt     time.Time // when a statement had waited for long
	links      []*link   // of the processes that live
	allLinks   []*link   // and of those that have ended

	calmFrom time.Time
	stopping chan struct{} // closed when callers are to begin nothing more
	stopOnce sync.Once
	all      sync.WaitGroup
	faults   int // that have happened
}

// A Violation is a promise that was broken.
type Violation struct {
	Kind string // of few, to compare two
	Text string
	At   time.Duration
}

// A Result is what became of a world.
type Result struct {
	Violation    *Violation
	Virtual      time.Duration
	Acquisitions int
	Faults       int
	Sum          uint64 // of the history
	World        *World
}

// Print prints the plan and the last events.
func (r Result) Print(to io.Writer, events int) {
	_, _ = fmt.Fprint(to, r.World.plan.String())
	if r.Violation != nil {
		_, _ = fmt.Fprintf(to, "VIOLATION after %v: %s: %s\n", r.Violation.At, r.Violation.Kind, r.Violation.Text)
	}
	r.World.history.print(to, events)
}

// Run runs a world in the bubble of its caller, to its end or its first violation. dir is for
// the files of the database; template is a migrated one.
func Run(plan Plan, dir string, template []byte) (Result, error) {
	w := &World{
		plan: plan, dir: dir, calmFrom: time.Now().Add(plan.Duration),
		names:   make(map[string]string),
		aliases: make(map[string]string), numbers: make(map[string]int),
		requests: make(chan func()), writer: make(chan struct{}, 1),
		resting: make(chan struct{}, 1), stopping: make(chan struct{}),
	}
	w.random = newSource(&w.plan, "world")
	w.history.began = time.Now()
	w.witness = newWitness(w)
	w.wakers.world = w
	for i := range plan.Keys {
		key := "k" + strconv.Itoa(i+1)
		w.keys = append(w.keys, key)
		w.name(key)
	}
	for _, key := range w.seatKeys() {
		w.name(key)
	}
	defer close(w.requests)
	go func() {
		for fn := range w.requests {
			fn()
		}
	}()
	defer virtualsqlite.ReplaceClock(func() time.Time { return w.databaseTime(time.Now()) })()
	defer batch.ReplaceYield(settle)()
	if err := w.open(template); err != nil {
		return Result{}, err
	}
	defer func() { w.serve(func() { _ = w.observer.close() }) }()
	w.live()
	time.Sleep(time.Millisecond) // a batcher may yield once more
	return Result{
		Violation: w.violation, Virtual: time.Since(w.history.began), Acquisitions: w.witness.number,
		Faults: w.faults, Sum: w.history.sum(), World: w,
	}, nil
}

// name notes a key. It is free as yet.
func (w *World) name(key string) {
	w.names[key] = key
	w.witness.free[key] = time.Now()
}

// open creates the database.
func (w *World) open(template []byte) error {
	w.path = filepath.Join(w.dir, "0.db")
	if err := os.WriteFile(w.path, template, 0o600); err != nil {
		return err
	}
	var err error
	if _, w.observer, err = w.connect(false); err != nil {
		return err
	}
	return w.prepareGuarded()
}

// connect returns a session of the database as it is now.
func (w *World) connect(deferred bool) (generation int, s *session, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serve(func() { s, err = newSession(w.path, deferred) })
	return w.generation, s, err
}

// serve has the goroutine of the database run fn. SQLite needs a large stack, which a new
// goroutine for each statement would have to grow; and things happen one after the other.
func (w *World) serve(fn func()) {
	done := make(chan struct{})
	w.requests <- func() {
		defer close(done)
		fn()
	}
	<-done
}

func (w *World) currentGeneration() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.generation
}

// live lets the processes run while there are faults, and then without.
func (w *World) live() {
	for i := range w.plan.Processes {
		w.all.Go((&slot{world: w, plan: &w.plan.Processes[i]}).live)
	}
	w.all.Go(w.watch)
	w.all.Go(w.outages)
	if w.plan.Can(Failover) {
		w.all.Go(w.failOver)
	}
	lasts := time.Until(w.calmFrom)
	if w.plan.Shape != Contended { // which is calm all the time
		lasts += calm
	}
	w.pause(lasts)
	w.stop()
	w.all.Wait()
	if !w.isBroken() {
		w.probe()
	}
	w.all.Wait()
	if !w.isBroken() {
		w.checkNothingLeft()
	}
}

// checkNothingLeft checks that nothing of the processes is left.
func (w *World) checkNothingLeft() {
	if n := w.wakers.left(); n > 0 {
		w.violated("left", "%d callers are subscribed to wake-ups", n)
	}
	for _, l := range w.allLinks {
		if l.open > 0 {
			w.violated("left", "%s has %d open connections", l.process, l.open)
		}
	}
}

// settling is how long after the last fault a statement may still be affected.
const settling = unansweredFor + longestFault + longestDelay + longestOrphan

// calm is how long processes go on without faults: so long that a caller which begins to wait
// when all has settled, and overlooks that the lock is free, is found.
const calm = settling + longestWait + patience

// watch checks the leases, and the waiters while nothing is wrong.
func (w *World) watch() {
	for w.pause(500 * time.Millisecond) {
		w.witness.check()
		if len(w.plan.Faults) == 0 {
			w.witness.overlooked(w.history.began)
		} else if w.isCalm() {
			w.witness.overlooked(w.calmFrom.Add(settling))
		}
	}
}

// probe checks that every key can be locked again. All processes have ended, so only a minimum
// hold may have left a row.
func (w *World) probe() {
	first := w.plan.Processes[0]
	plan := ProcessPlan{Name: "p0", Watches: true, Repository: first.Repository, Registry: first.Registry}
	p := newProcess(&slot{world: w, plan: &plan})
	if err := p.boot(); err != nil {
		w.violated("probe", "the database is well: %v", err)
		return
	}
	for _, key := range w.keys {
		const bound = longestMinHold + patience
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		lease, err := p.registry.Lock(ctx, key)
		if err != nil {
			w.violated("probe", "%q cannot be locked for %v, after all faults: %v", key, bound, err)
		} else if err := lease.Unlock(ctx); err != nil {
			w.violated("probe", "unlock %q: %v", key, err)
		}
		cancel()
	}
	w.probeSeats(p)
	p.close(context.Background())
}

// stop ends the world: callers begin nothing more.
func (w *World) stop() { w.stopOnce.Do(func() { close(w.stopping) }) }

func (w *World) isStopping() bool { return isClosed(w.stopping) }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// pause waits. It returns false if the world stops.
func (w *World) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return !w.isStopping()
	case <-w.stopping:
		return false
	}
}

// after runs fn later, even if the world stops meanwhile.
func (w *World) after(d time.Duration, fn func()) {
	w.all.Go(func() {
		time.Sleep(d)
		fn()
	})
}

func (w *World) isCalm() bool { return len(w.plan.Faults) == 0 || !time.Now().Before(w.calmFrom) }

// violated notes a broken promise, and stops the world. Only the first one counts.
func (w *World) violated(kind, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.note("-", "VIOLATION %s: %s", kind, text)
	w.history.close()
	w.mu.Lock()
	if w.violation == nil {
		w.violation = &Violation{kind, text, time.Since(w.history.began)}
	}
	w.mu.Unlock()
	w.stop()
}

// counted counts a fault that has happened.
func (w *World) counted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults++
}

// slowness is how large a part of the shortest time-to-live a statement may wait for other
// connections, before a caller may find that an answer has come too late.
const slowness = 1.0 / 4

// noteSlowness notes when a statement has waited for long, since began.
func (w *World) noteSlowness(began time.Time) {
	if time.Since(began) < time.Duration(slowness*float64(w.plan.shortestTTL())) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slowAt = time.Now()
}

// wasSlow reports whether a statement has waited for long since an instant.
func (w *World) wasSlow(since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slowAt.After(since)
}

// isSettled reports whether nothing is affected by faults any more.
func (w *World) isSettled() bool { return w.wasSettled(time.Now()) }

func (w *World) wasSettled(at time.Time) bool {
	return len(w.plan.Faults) == 0 || at.Sub(w.calmFrom) > settling
}

// longestStatements is how long the few statements of one call may take, if nothing but the network
// limits them.
func (w *World) longestStatements() time.Duration {
	return 3 * (unansweredFor + longestFault + longestDelay + w.plan.Busy)
}

// isBroken reports whether a promise was broken, after which nothing more is checked.
func (w *World) isBroken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violation != nil
}
