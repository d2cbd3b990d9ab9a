package simulation

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// The keys of the semaphore and of the read-write lock.
const (
	semaphoreKey = "s"
	readWriteKey = "rw"
)

// seatLocks are the semaphore and the read-write lock of a process. They are made when they are
// needed, and kept.
type seatLocks struct {
	mu        sync.Mutex
	permits   *semaphore.Semaphore
	readWrite *rwlock.Lock
}

// permitKeys, readerKeys and seatKeys are keys of rows: of the permits, of the readers, and of all that
// the semaphore and the read-write lock have.
func (w *World) permitKeys() []string { return numbered(semaphoreKey+" permit ", w.plan.Permits) }

func (w *World) readerKeys() []string { return numbered(readWriteKey+" reader ", rwlock.MaxReaders) }

func (w *World) seatKeys() (keys []string) {
	if w.plan.Permits > 0 {
		keys = append(w.permitKeys(), semaphoreKey+" permit turn")
	}
	if w.plan.ReadWrite {
		keys = append(append(keys, w.readerKeys()...), readWriteKey, readWriteKey+" reader turn")
	}
	return keys
}

func numbered(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = prefix + strconv.Itoa(i)
	}
	return keys
}

// isOfSeats reports whether a lock of this name has a row of the semaphore or of the read-write lock.
func isOfSeats(key string) bool {
	return strings.HasPrefix(key, semaphoreKey+" ") || strings.HasPrefix(key, readWriteKey)
}

// guardedKeys are the keys of the rows that guarded transactions write.
func (w *World) guardedKeys() []string {
	keys := append(w.permitKeys(), w.keys...)
	if w.plan.ReadWrite {
		keys = append(keys, readWriteKey, readWriteKey+readersWrite)
	}
	return keys
}

// A seating is a call that acquires seats.
type seating struct {
	worker *worker
	name   string
	keys   []string // if all of these are free for long, it must have got what it wants
	wait   time.Duration
	writer *claim // see acquiredWithin
}

// begin notes that the call begins.
func (s seating) begin(ctx context.Context) *attempt {
	k := s.worker
	k.note("%s %v", s.name, s.wait)
	a := k.attempt(ctx, s.name, nil, false)
	a.seats = true
	if s.wait > 0 {
		a.waits = k.world.witness.waits(k.process, s.keys, k.world.plan.LongestTTL())
	}
	return a
}

// call acquires, works, and unlocks. acquire gets the wait: 0 for a single try.
func (s seating) call(ctx context.Context, acquire func(ctx context.Context, wait time.Duration) (*sqllock.Lease, error)) {
	k, a := s.worker, s.begin(ctx)
	lease, err := acquire(ctx, s.wait)
	limit := s.wait
	if s.wait == 0 {
		limit = k.longestSeating(a)
	}
	k.ended(a, limit, err)
	s.checkPatience(a, err)
	if err == nil {
		k.hold(handle{ttl: k.plan.Registry.TTL}, lease, a.began, s.writer)
	}
}

// checkPatience checks that a wait has not ended without the lock before its time.
func (s seating) checkPatience(a *attempt, err error) {
	k := s.worker
	early := s.wait > 0 && time.Since(a.began) < s.wait && a.ctx.Err() == nil
	if early && errors.Is(err, sqllock.ErrNotAcquired) && !k.isDead() && !k.isClosed() && !k.world.isBroken() {
		k.world.violated("gave up", "%s: %s has ended %v before its limit: %v", k.name, s.name, s.wait-time.Since(a.began), err)
	}
}

// execute runs a function under the lock.
func (s seating) execute(ctx context.Context, execute func(context.Context, time.Duration, func(context.Context) error) error) {
	k := s.worker
	e := &execution{attempt: s.begin(ctx), worker: k}
	err := execute(ctx, s.wait, func(ctx context.Context) error {
		return e.run(ctx, func(c *claim) error {
			k.work(ctx, c)
			if k.random.chance(0.1) {
				return errOwn
			}
			return nil
		})
	})
	k.note("%s: %v", s.name, err)
	e.returned(s.wait, 0, err)
}

// longestSeating is how long a single try to acquire seats may take: see longestTry.
func (k *worker) longestSeating(a *attempt) time.Duration {
	if k.world.wasSettled(a.began) {
		return patience
	}
	return 8 * k.longestTry(a, k.world.plan.LongestTTL())
}

// probeSeats checks that the semaphore and the read-write lock can be acquired again.
func (w *World) probeSeats(p *process) {
	const bound = longestMinHold + patience
	ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
	defer cancel()
	k := &worker{process: p, world: w, name: p.id}
	check := func(what string, lease *sqllock.Lease, err error) {
		if err == nil {
			err = lease.Unlock(ctx)
		}
		if err != nil {
			w.violated("probe", "%s, after all faults: %v", what, err)
		}
	}
	if s := k.semaphore(); s != nil {
		lease, err := s.TryAcquireFor(ctx, s.Permits(), bound)
		check("all permits", lease, err)
	}
	if l := k.readWriteLock(); l != nil {
		lease, err := l.TryLockFor(ctx, bound)
		check("the write lock", lease, err)
		lease, err = l.TryRLockFor(ctx, bound)
		check("the read lock", lease, err)
	}
}
