package leader_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/sync/leader"
)

// TestElections has several processes lead one role in turn, in virtual time. They resign, end,
// return, fail, panic, take long to return, ignore their contexts, are killed, closed and cut off,
// and their statements fail, all at random. Two must never lead at the same time.
//
// make simulate runs it for 10 000 terms, which takes 20 s of a processor without the race
// detector.
func TestElections(t *testing.T) {
	t.Parallel()
	worlds, terms := 2, 30
	everything := os.Getenv("SQLLOCK_SIMULATE") != ""
	switch {
	case everything:
		worlds, terms = 10, 1000
	case testing.Short():
		terms = 10
	}
	happened := &tally{times: make(map[string]int)}
	t.Cleanup(func() { // after all worlds
		t.Log(happened.times)
		for _, what := range []string{"resigned", "lost", "killed", "closed", "shut down", "cut off", "unsettled", "ran late", "panicked", "failed", "returned", "ignored its context"} {
			if happened.times[what] == 0 && everything {
				t.Errorf("never: %s", what)
			}
		}
	})
	for world := range worlds {
		t.Run(fmt.Sprint(world), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				layout := []dialect.Layout{dialect.Spring7, dialect.Spring6}[world%2]
				random := rand.New(rand.NewPCG(uint64(world), 0)) //nolint:gosec // no secret, but the same again
				e := &election{T: t, db: virtual.Migrated(t, layout), terms: terms, tally: happened, random: random}
				e.run()
			})
		})
	}
}

// A tally counts what happens.
type tally struct {
	mu    sync.Mutex
	times map[string]int
}

func (c *tally) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times[what]++
}

const (
	voters   = 3 // processes
	voterTTL = 2 * time.Second
)

// An election is several processes that want one role.
type election struct {
	*testing.T
	*tally
	db    *dbtest.DB
	terms int

	mu     sync.Mutex
	random *rand.Rand
	begun  int             // terms
	active []*electionTerm // those whose functions run
}

// An electionTerm is a function that runs.
type electionTerm struct {
	ctx   context.Context
	lease *sqllock.Lease
	by    *voter
}

// A voter is a process, which begins again when it has ended.
type voter struct {
	*election
	name    string
	network *flaky.Connector
	dead    atomic.Bool // killed: what its functions do does not happen
}

func (e *election) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range voters {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				v := &voter{election: e, name: fmt.Sprintf("p%d.%d", i, n), network: flaky.New(e.db.DB.Driver(), e.db.DSN)}
				v.live(ctx)
			}
		})
	}
	began := time.Now()
	for e.count() < e.terms {
		time.Sleep(10 * voterTTL)
		if time.Since(began) > time.Duration(e.terms)*10*voterTTL {
			e.Errorf("%d terms in %v", e.count(), time.Since(began))
			break
		}
	}
	cancel()
	all.Wait()
	time.Sleep(time.Minute) // until the last statement has timed out
	e.Logf("%d terms in %v", e.count(), time.Since(began).Round(time.Second))
}

func (e *election) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.begun
}

// below returns a random time, or number.
func (e *election) below(d time.Duration) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Duration(e.random.Int64N(int64(d)))
}

// one returns true once in n times.
func (e *election) one(n time.Duration) bool { return e.below(n) == 0 }

// live is a process from its start to its end.
func (v *voter) live(ctx context.Context) {
	defer v.network.Follow(nil)
	db := sqlx.NewDb(sql.OpenDB(v.network), "sqlite")
	defer db.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	repository, err := sqllock.NewRepository(ctx, db.DB, v.db.Dialect, &sqllock.RepositoryOptions{ClientID: v.name, TTL: voterTTL})
	if err != nil {
		return // the election is over
	}
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: voterTTL, IdleBetweenTries: voterTTL / 4, NoRenew: true})
	if err != nil {
		v.Error(err)
		return
	}
	elector, err := leader.New(registry, role, &leader.Options{SitOut: voterTTL / 2, ObserveEvery: voterTTL / 2})
	if err != nil {
		v.Error(err)
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if r := recover(); r != nil && r != errStop { //nolint:errorlint // it is this one
				panic(r)
			}
		}()
		if err := elector.Run(ctx, v.lead); err == nil {
			v.Error("Run returned nil")
		}
	}()
	v.suffer(elector, registry, cancel, ended) //nolint:contextcheck // what happens does not end with the election
	cancel(errStop)
	<-ended
	closing, cancelClosing := context.WithTimeout(context.Background(), voterTTL)
	defer cancelClosing()
	_ = registry.Close(closing) //nolint:contextcheck // it ends after ctx; it may be closed already, or its network broken
}

// suffer has things happen to a process until it has ended, or is to end.
func (v *voter) suffer(elector *leader.Elector, registry *sqllock.Registry, stop context.CancelCauseFunc, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(v.below(4 * voterTTL)):
		}
		switch v.below(12) {
		case 0:
			v.note("killed")
			v.dead.Store(true)
			v.network.Follow(func(context.Context, flaky.Moment) error { return errStop })
			return
		case 1:
			v.note("shut down")
			stop(errStop)
			return
		case 2:
			v.note("closed")
			ctx, cancel := context.WithTimeout(context.Background(), voterTTL)
			_ = registry.Close(ctx) // the network may be broken
			cancel()
			return
		case 3:
			v.cutOff(voterTTL + v.below(2*voterTTL))
		case 4:
			v.unsettle(v.below(3 * voterTTL))
		default:
			ctx, cancel := context.WithTimeout(context.Background(), v.below(2*voterTTL))
			err := elector.Resign(ctx)
			cancel()
			if err == nil {
				v.note("resigned")
			}
		}
	}
}

// cutOff has all statements fail for a while.
func (v *voter) cutOff(d time.Duration) {
	v.note("cut off")
	v.network.Follow(func(context.Context, flaky.Moment) error { return errStop })
	time.Sleep(d)
	v.network.Follow(nil)
}

// unsettle has statements take a random time and fail at random for a while, before or after they
// have taken effect. Some run although their contexts have ended meanwhile.
func (v *voter) unsettle(d time.Duration) {
	v.note("unsettled")
	slowest := v.below(voterTTL)
	v.network.Follow(func(ctx context.Context, m flaky.Moment) error {
		switch {
		case v.one(8):
			return errStop
		case m.Done, m.Op == flaky.Rollback:
			// Nothing would end these pauses, and database/sql waits for them with a mutex, which
			// stops the bubble's clock.
			return nil
		}
		select {
		case <-time.After(v.below(slowest)):
			return nil
		case <-ctx.Done():
		}
		if v.one(2) {
			v.note("ran late") // it was sent already
			return nil
		}
		return ctx.Err()
	})
	time.Sleep(d)
	v.network.Follow(nil)
}

// lead is what a process does as the leader.
func (v *voter) lead(ctx context.Context, lease *sqllock.Lease) error {
	term := &electionTerm{ctx, lease, v}
	v.begin(term) //nolint:contextcheck // the contexts of other terms
	defer v.end(term)
	if v.one(20) {
		v.note("ignored its context")
		time.Sleep(v.below(3 * voterTTL))
		return nil
	}
	enough := v.below(voterTTL / 4)
	if v.one(10) {
		enough = time.Hour
	}
	select {
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), sqllock.ErrLockLost) {
			v.note("lost")
		}
		time.Sleep(v.below(voterTTL)) // under the lease, if that was not lost
		return ctx.Err()
	case <-time.After(enough):
	}
	switch v.below(12) {
	case 0:
		v.note("panicked")
		panic(errStop)
	case 1:
		v.note("failed")
		return errStop
	default:
		v.note("returned")
		return nil
	}
}

// begin checks that no other function leads: a function that still runs has lost its lease, and
// its context has ended.
func (e *election) begin(term *electionTerm) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun++
	for _, other := range e.active {
		if !other.by.dead.Load() && (other.ctx.Err() == nil || !other.isLost()) {
			e.Errorf("%s leads with token %d, and %s still has token %d", term.by.name, term.lease.Token(), other.by.name, other.lease.Token())
		}
	}
	e.active = append(e.active, term)
}

func (t *electionTerm) isLost() bool {
	cause := context.Cause(t.lease.Context())
	return errors.Is(cause, sqllock.ErrLockLost) || errors.Is(cause, sqllock.ErrClosed)
}

func (e *election) end(term *electionTerm) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active = slices.DeleteFunc(e.active, func(other *electionTerm) bool { return other == term })
}
