package bell

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/sqltext"
)

const (
	// maxNames is for how many locks a process can be woken at a time, those for which it has waited longest. Where many come
	// and go, polls alone are cheaper.
	maxNames = 16
	// longest is the longest sleep, half of it for the name. The server writes statements of more than ten seconds
	// into its slow log by default.
	longest = 9 * time.Second
	// answerTimeout is how much longer than its sleep a statement may take, connecting included.
	answerTimeout = 5 * time.Second
	// ringPause is the time between a ring and the next sleep. The lock is acquired meanwhile, and its name is not
	// needed any more. leastSleep is how long a process sleeps at least before it ends its sleep since it wants other
	// names. Both are so long for every namesPerPause names.
	ringPause, leastSleep = 5 * time.Millisecond, 10 * time.Millisecond
	namesPerPause         = 4
	// tooShort is less than a sleep takes that nothing ends.
	tooShort = 100 * time.Millisecond
	// firstRest and lastRest limit the time after a failure in which nothing is tried. It doubles with each.
	firstRest, lastRest = time.Second, 30 * time.Second
)

// afterBegin is when to poll after the begin of a sleep: the name may have been taken after the release, or between
// the condition of a DELETE and its commit, which may have to wait for the disk.
var afterBegin = [...]time.Duration{3 * time.Millisecond, 10 * time.Millisecond}

// A Bell takes the names of the locks that a process waits for, and rings for those that it releases. All methods are
// safe for concurrent use.
type Bell struct {
	*ringer

	sessions *sql.DB // they sleep, and do nothing else

	mu      sync.Mutex
	reports []func(lockKeys []string)
	waiters map[string]*waiters // by name
	arrived uint64              // how many names there have been
	sleep   *sleep              // nil while no statement sleeps
	ready   time.Time           // when the next one may begin
	rest    time.Duration       // after the next failure; 0 if the last sleep was none
	cancel  context.CancelFunc  // ends the goroutine; nil if there is none
	done    chan struct{}       // closed when it has ended
	closed  bool
}

// waiters wait for one lock.
type waiters struct {
	n       int
	place   uint64 // in the order of arrival
	lockKey string
}

// A sleep is a statement that sleeps.
type sleep struct {
	began  time.Time
	names  []string
	keys   []string    // of their locks
	timer  *time.Timer // ends it when other names are wanted
	ended  bool        // by this process
	checks []*time.Timer
}

// New returns a bell. The pool sessions is for the bell alone, and has one connection. Rings are sent over pool.
func New(sessions, pool *sql.DB, d *sqltext.Dialect) *Bell {
	sessions.SetMaxOpenConns(1)
	return &Bell{ringer: newRinger(pool, d), sessions: sessions, waiters: make(map[string]*waiters)}
}

// Tell has report called with the keys of locks of which one may have been released. It must not block, and not change
// the slice. onFailure is called, once a minute at most, with why this process cannot be woken, or wakes no other.
func (b *Bell) Tell(report func(lockKeys []string), onFailure func(error)) {
	b.mu.Lock()
	b.reports = append(b.reports, report)
	b.mu.Unlock()
	b.ringer.mu.Lock()
	defer b.ringer.mu.Unlock()
	b.onFailure = append(b.onFailure, onFailure)
}

// Attend is called by a waiter for the lock of a key, which all processes give the same name. Until it calls leave, this process
// can be woken.
func (b *Bell) Attend(name, lockKey string) (leave func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.waiters[name]
	if w == nil {
		b.arrived++
		w = &waiters{place: b.arrived, lockKey: lockKey}
		b.waiters[name] = w
	}
	if w.n++; w.n == 1 {
		b.adapt()
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if w.n--; w.n == 0 {
			delete(b.waiters, name)
			b.adapt()
		}
	}
}

// Close ends the sleep, and waits for rings that are under way, a second each at most.
func (b *Bell) Close() error {
	b.mu.Lock()
	b.closed = true
	cancel, done, asleep := b.cancel, b.done, b.sleep != nil
	if asleep {
		b.sleep.ended = true
	}
	b.mu.Unlock()
	if asleep {
		b.Ring(true, b.own)
	}
	b.finish()
	if cancel != nil {
		cancel() // closes the connection if it is still asleep
		<-done
	}
	return b.sessions.Close()
}

// wanted returns the names that a sleep is to have.
func (b *Bell) wanted() []string {
	names := make([]string, 0, len(b.waiters))
	for name := range b.waiters {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Compare(b.waiters[x].place, b.waiters[y].place) })
	return names[:min(len(names), maxNames)]
}

// adapt begins a sleep, or ends the one that has other names than are wanted.
func (b *Bell) adapt() {
	switch s := b.sleep; {
	case b.closed:
	case b.cancel == nil && len(b.waiters) > 0:
		var ctx context.Context
		ctx, b.cancel = context.WithCancel(context.Background())
		b.done = make(chan struct{})
		go b.run(ctx, b.done)
	case s != nil && s.timer == nil && !b.isWanted(s):
		pause := s.times(leastSleep)
		s.timer = time.AfterFunc(time.Until(s.began.Add(pause)), func() { b.end(s, pause) })
	}
}

// times is a pause for the names of a sleep.
func (s *sleep) times(pause time.Duration) time.Duration {
	return pause * time.Duration(1+len(s.names)/namesPerPause)
}

// isWanted reports whether a sleep has the names that are wanted.
func (b *Bell) isWanted(s *sleep) bool {
	if len(s.names) != min(len(b.waiters), maxNames) {
		return false
	}
	for _, name := range s.names {
		if b.waiters[name] == nil {
			return false
		}
	}
	return true
}

// end ends a sleep whose names are not wanted. It tries again until that has ended: the statement may not have begun.
func (b *Bell) end(s *sleep, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.timer = nil
	if b.sleep != s || b.closed || b.isWanted(s) {
		return
	}
	s.ended = true
	b.Ring(true, b.own)
	s.timer = time.AfterFunc(2*pause, func() { b.end(s, 2*pause) })
}

// run sleeps again and again while there are waiters.
func (b *Bell) run(ctx context.Context, done chan struct{}) {
	defer close(done)
	for {
		b.mu.Lock()
		pause := time.Until(b.ready)
		if len(b.waiters) == 0 || b.closed {
			b.cancel()
			b.cancel = nil
			b.mu.Unlock()
			return
		}
		if pause > 0 {
			b.mu.Unlock()
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		s := &sleep{began: time.Now(), names: b.wanted()}
		for _, name := range s.names {
			s.keys = append(s.keys, b.waiters[name].lockKey)
		}
		b.sleep = s
		for _, after := range afterBegin {
			s.checks = append(s.checks, time.AfterFunc(after, func() { b.report(s, true) }))
		}
		b.mu.Unlock()
		how, err := b.fallAsleep(ctx, s.names)
		b.wake(s, how)
		b.tell("sleep", err)
	}
}

// An end is how a sleep has ended.
type end int

const (
	over   end = iota // by itself
	rung              // by a KILL
	failed            // it was none
)

// errBrief is why a statement was no sleep that has not failed.
var errBrief = errors.New("it took less than 0.1 s: long_query_time is too small for it")

// fallAsleep sends the statement that sleeps. It returns an error if it was no sleep.
func (b *Bell) fallAsleep(ctx context.Context, names []string) (end, error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, longest+answerTimeout)
	defer cancel()
	var answer string
	err := b.sessions.QueryRowContext(limited, statement(b.own, names)).Scan(&answer)
	slept, _, _ := strings.Cut(answer, " ")
	switch {
	case isInterrupted(err), strings.HasSuffix(slept, "1"): // MariaDB; MySQL, whose SLEEP says so
		return rung, nil
	case err != nil: // also of a limit on statements
		return failed, err
	case time.Since(began) < tooShort:
		return failed, errBrief
	default:
		return over, nil
	}
}

// statement returns the statement that sleeps. It is an expression, so that the server gives the names up also if it
// is interrupted.
func statement(own string, names []string) string {
	// In seconds. With several names a sleep is shorter, after which those that others had are tried again.
	const most = "LEAST(9, IF(@@long_query_time > 0, 0.9 * @@long_query_time, 9))"
	taken, sleep := "", "SLEEP(LEAST(1, "+most+"))"
	if len(names) == 1 {
		sleep = "IF(GET_LOCK('" + names[0] + "', FLOOR(" + most + " / 2)), SLEEP(" + most + " / 2), SLEEP(LEAST(0.2, " + most + ")))"
	} else {
		for _, name := range names {
			taken += ", COALESCE(GET_LOCK('" + name + "', 0), 0)"
		}
	}
	return "SELECT CONCAT(COALESCE(GET_LOCK('" + own + "', 0), 0)" + taken + ", " + sleep + ", ' ', RELEASE_ALL_LOCKS())"
}

// wake notes how a sleep has ended.
func (b *Bell) wake(s *sleep, how end) {
	b.mu.Lock()
	b.sleep = nil
	if s.timer != nil {
		s.timer.Stop()
	}
	for _, check := range s.checks {
		check.Stop()
	}
	now := time.Now()
	switch {
	case how == failed:
		b.rest = min(max(firstRest, 2*b.rest), lastRest)
		b.ready = now.Add(b.rest)
	case how == rung && !s.ended:
		b.rest, b.ready = 0, now.Add(s.times(ringPause))
	default:
		b.rest = 0
	}
	b.mu.Unlock()
	if how == rung && !s.ended {
		b.report(s, false)
	}
}

// report has those poll who wait for the locks of a sleep: at its end, or while it is underWay.
func (b *Bell) report(s *sleep, underWay bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if underWay && b.sleep != s {
		return
	}
	for _, report := range b.reports {
		report(s.keys)
	}
}
