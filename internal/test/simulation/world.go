package simulation

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/test/virtual"
)

// A World is a database and the processes that share it. It lives in a synctest bubble.
type World struct {
	plan  Plan
	dir   string
	keys  []string          // as callers write them
	names map[string]string // of LOCK_KEYs
	// lockKeys are what keys are mapped to.
	lockKeys map[string]string
	history  history
	witness  *witness
	wakers   wakers
	// requests are for the goroutine of the database.
	requests chan func()
	// writer has a value while a connection may write.
	writer chan struct{}
	// resting has a value while a process waits for all others to rest.
	resting chan struct{}

	random *source // for what befalls all

	mu         sync.Mutex
	path       string // of the database's file
	generation int
	observer   *session
	aliases    map[string]string // of holders
	numbers    map[string]int    // of holders, by client
	violation  *Violation
	links      []*link // of those that live
	allLinks   []*link

	calmFrom time.Time
	stopping chan struct{} // closed when callers are to begin nothing more
	stopOnce sync.Once
	all      sync.WaitGroup
	result   Result
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
		plan: plan, dir: dir, names: make(map[string]string), lockKeys: make(map[string]string), aliases: make(map[string]string), numbers: make(map[string]int),
		requests: make(chan func()), writer: make(chan struct{}, 1), resting: make(chan struct{}, 1), stopping: make(chan struct{}), calmFrom: time.Now().Add(plan.Duration),
	}
	w.random = newSource(&w.plan, "world")
	w.history.began = time.Now()
	w.witness = newWitness(w)
	w.wakers.world = w
	for i := range plan.Keys {
		key := "k" + strconv.Itoa(i+1)
		lockKey, err := sqllock.SpringKeys(key)
		if err != nil {
			return Result{}, err
		}
		w.keys, w.names[lockKey], w.lockKeys[key] = append(w.keys, key), key, lockKey
	}
	defer close(w.requests)
	go func() {
		for fn := range w.requests {
			fn()
		}
	}()
	defer virtual.ReplaceClock(func() time.Time { return w.databaseTime(time.Now()) })()
	defer jitter.Replace(newSource(&w.plan, "library").int64N)()
	if err := w.open(template); err != nil {
		return Result{}, err
	}
	defer func() { w.serve(func() { _ = w.observer.close() }) }()
	w.live()
	w.result.Violation, w.result.Virtual, w.result.Sum, w.result.World = w.violation, time.Since(w.history.began), w.history.sum(), w
	w.result.Acquisitions = w.witness.number
	return w.result, nil
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

// prepareGuarded creates the table that guarded transactions write.
func (w *World) prepareGuarded() error {
	var err error
	w.serve(func() {
		_, err = w.observer.exec("CREATE TABLE guarded (key TEXT PRIMARY KEY, number INTEGER NOT NULL)", nil)
		for _, key := range w.keys {
			_, insertErr := w.observer.exec("INSERT INTO guarded VALUES (?, 0)", []driver.NamedValue{{Ordinal: 1, Value: key}})
			err = errors.Join(err, insertErr)
		}
	})
	return err
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
	w.all.Go(w.trouble)
	if w.plan.Can(Failover) {
		w.all.Go(w.failOver)
	}
	w.pause(time.Until(w.calmFrom) + calm)
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

// calm is how long processes go on without faults.
const calm = 30 * time.Second

// settling is how long after the last fault a statement may still be affected.
const settling = unansweredFor + longestFault + longestDelay + longestOrphan

// patience is how long a free lock may stay unnoticed by a waiter, beyond IdleBetweenTries.
const patience = 10 * time.Second

// watch looks for waiters that overlook that a lock is free, when there are no faults.
func (w *World) watch() {
	for w.pause(500 * time.Millisecond) {
		w.witness.unnoticed()
		if len(w.plan.Faults) == 0 {
			w.witness.overlooked(w.history.began)
		} else if w.isCalm() {
			w.witness.overlooked(w.calmFrom.Add(settling))
		}
	}
}

// probe checks that every key can be locked again.
func (w *World) probe() {
	plan := ProcessPlan{Name: "p0", Watches: true, Repository: w.plan.Processes[0].Repository, Registry: w.plan.Processes[0].Registry}
	p := newProcess(&slot{world: w, plan: &plan})
	if err := p.boot(); err != nil {
		w.violated("probe", "the database is well: %v", err)
		return
	}
	for _, key := range w.keys {
		bound := w.plan.LongestTTL() + longestMinHold + patience
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		lease, err := p.registry.Lock(ctx, key)
		if err != nil {
			w.violated("probe", "%q cannot be locked %v after all faults: %v", key, bound, err)
		} else if err := lease.Unlock(ctx); err != nil {
			w.violated("probe", "unlock %q: %v", key, err)
		}
		cancel()
	}
	p.close(context.Background())
}

// stop ends the world: callers begin nothing more.
func (w *World) stop() { w.stopOnce.Do(func() { close(w.stopping) }) }

func (w *World) isStopping() bool {
	select {
	case <-w.stopping:
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

func (w *World) note(who, format string, args ...any) {
	text := holderForm.ReplaceAllStringFunc(fmt.Sprintf(format, args...), w.alias)
	w.history.note(who, text)
}

// holderForm finds the holders in a text. Their numbers are random.
var holderForm = regexp.MustCompile(`p[0-9]+\.[0-9]+-[0-9a-f]{11}`)

// observe compares the tables with what callers believe.
func (w *World) observe(by string) { w.observeForced(by, "") }

func (w *World) observeForced(by, forced string) {
	end := "EXPIRED_AFTER"
	if w.plan.Layout.String() == "spring6" {
		end = "CREATED_DATE"
	}
	var rows *buffered
	var err error
	w.serve(func() {
		rows, err = w.observer.query("SELECT LOCK_KEY, CLIENT_ID, datetime("+end+", 'subsec'), NULL FROM INT_LOCK UNION ALL SELECT key, NULL, NULL, number FROM guarded", nil)
	})
	if err != nil {
		w.violated("observer", "%v", err)
		return
	}
	var locks []lockRow
	written := make(map[string]int64)
	for _, row := range rows.rows {
		if number, ok := row[3].(int64); ok {
			written[row[0].(string)] = number
			continue
		}
		locks = append(locks, lockRow{w.names[row[0].(string)], row[1].(string), w.endOf(row[2])})
	}
	for _, key := range w.witness.observed(locks, written, by, forced) {
		w.wakers.deleted(w.lockKeys[key])
	}
}

// deleteByForce deletes the row of a key, as an administrator may.
func (w *World) deleteByForce(key string) {
	var result driver.Result
	var err error
	w.serve(func() {
		result, err = w.observer.exec("DELETE FROM INT_LOCK WHERE LOCK_KEY = ?", []driver.NamedValue{{Ordinal: 1, Value: w.lockKeys[key]}})
	})
	if err != nil {
		return // another connection writes
	}
	if n, err := result.RowsAffected(); err == nil && n > 0 {
		w.note("admin", "deletes %s by force", key)
		w.counted()
		w.observeForced("admin", key)
	}
}

// addLink has a network take part in the troubles of all.
func (w *World) addLink(l *link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allLinks = append(w.allLinks, l)
	w.links = append(slices.DeleteFunc(w.links, (*link).isDead), l)
}

// trouble has faults that last for a while begin, and end.
func (w *World) trouble() {
	for w.pause(w.random.around(meanPeace)) && !w.isCalm() {
		f := w.random.pickFault(&w.plan, Silence, Stall, Away)
		if f == "" {
			return
		}
		w.mu.Lock()
		links := slices.Clone(w.links)
		w.mu.Unlock()
		if f != Away && len(links) > 0 { // the network of one process, and its two pools
			i := w.random.intN(len(links)/2) * 2
			links = links[i : i+2]
		}
		d := w.random.upTo(longestFault)
		w.counted()
		for _, l := range links {
			w.note(l.process, "%s for %v", f, d)
			l.begin(f, d)
		}
	}
}

// meanPeace is the mean time between two faults that last for a while.
const meanPeace = 40 * time.Second

// counted counts a fault that has happened.
func (w *World) counted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.result.Faults++
}

// isSettled reports whether nothing is affected by faults any more.
func (w *World) isSettled() bool {
	return len(w.plan.Faults) == 0 || time.Since(w.calmFrom) > settling
}

// isBroken reports whether a promise was broken, after which nothing more is checked.
func (w *World) isBroken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violation != nil
}

// databaseTime returns what the database's clock says at an instant.
func (w *World) databaseTime(t time.Time) time.Time {
	passed := t.Sub(w.history.began)
	return t.Add(w.plan.Offset + time.Duration(float64(passed)*w.plan.Drift))
}

// instantOf returns when the database's clock says something.
func (w *World) instantOf(said time.Time) time.Time {
	passed := said.Sub(w.history.began) - w.plan.Offset
	return w.history.began.Add(time.Duration(float64(passed) / (1 + w.plan.Drift)))
}

// endOf returns when a row expires.
func (w *World) endOf(column driver.Value) time.Time {
	text, _ := column.(string)
	end, err := time.Parse("2006-01-02 15:04:05.000", text)
	if err != nil {
		w.violated("observer", "instant %v: %v", column, err)
	}
	if w.plan.Layout.String() == "spring6" {
		end = end.Add(w.plan.Processes[0].Registry.TTL)
	}
	return w.instantOf(end)
}

// alias returns a name for a holder that does not depend on its random number.
func (w *World) alias(holder string) string {
	if holder == "" {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if name, ok := w.aliases[holder]; ok {
		return name
	}
	client := clientOf(holder)
	w.numbers[client]++
	name := client + "#" + strconv.Itoa(w.numbers[client])
	w.aliases[holder] = name
	return name
}

// clientOf returns the client id of a holder.
func clientOf(holder string) string {
	client, _, _ := strings.Cut(holder, "-")
	return client
}

// describe returns a statement as the history shows it.
func (w *World) describe(query string, args []driver.NamedValue) string {
	words := strings.Fields(query)
	text := strings.Join(words[:min(4, len(words))], " ")
	for _, arg := range args {
		value, ok := arg.Value.(string)
		switch {
		case !ok:
		case w.names[value] != "":
			text += " " + w.names[value]
		case holderForm.MatchString(value) && !strings.HasPrefix(value, "["):
			text += " " + value
		case strings.HasPrefix(value, "["):
			text += " " + w.describeMany(value)
		}
	}
	return text
}

// describeMany returns the keys of a batch.
func (w *World) describeMany(list string) string {
	var keys []string
	for lockKey, key := range w.names {
		if strings.Contains(list, lockKey) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return "[" + strings.Join(keys, " ") + "]"
}
