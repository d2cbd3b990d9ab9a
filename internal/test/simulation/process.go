package simulation

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/observe"
)

// A slot is where processes live, one after the other: each is a new one after a crash, or
// after its registry was closed.
type slot struct {
	world *World
	plan  *ProcessPlan
	lives int
}

func (s *slot) live() {
	w := s.world
	for !w.isStopping() {
		p := newProcess(s)
		p.live()
		w.pause(p.random.upTo(5 * time.Second))
	}
}

// A process is one program: a network of its own, two pools, a registry, and its callers.
type process struct {
	world *World
	plan  *ProcessPlan
	id    string // p2.3 is the third process of the second slot; also its client id
	// The networks of its two pools.
	link, appLink *link
	random        *source

	pool, app  *sqlx.DB // of the registry, and of guarded transactions
	repository *sqllock.Repository
	registry   *sqllock.Registry
	attempts   attempts
	seats      seatLocks
	ctx        context.Context //nolint:containedctx // of the process
	end        context.CancelFunc
	workers    sync.WaitGroup

	mu     sync.Mutex
	dead   bool
	closed bool     // Close was called
	kept   []*claim // with a minimum hold, when Close was called
}

func newProcess(s *slot) *process {
	s.lives++
	p := &process{world: s.world, plan: s.plan, id: fmt.Sprintf("%s.%d", s.plan.Name, s.lives)}
	p.random = newSource(&s.world.plan, p.id)
	p.link = newLink(s.world, p.id, "", s.plan.Watches)
	p.ctx, p.end = context.WithCancel(context.Background())
	p.pool = sqlx.NewDb(sql.OpenDB(p.link), "sqlite")
	if s.plan.Connections > 0 {
		p.pool.SetMaxOpenConns(s.plan.Connections)
	}
	p.appLink = newLink(s.world, p.id, " app", s.plan.Watches)
	p.appLink.deferred = s.plan.Deferred
	p.app = sqlx.NewDb(sql.OpenDB(p.appLink), "sqlite")
	p.world.addLinks(p.link, p.appLink)
	return p
}

// live is all of a process's life.
func (p *process) live() {
	w := p.world
	for p.boot() != nil {
		if !w.pause(p.random.upTo(time.Second)) {
			p.end()
			p.closePools()
			return
		}
	}
	w.note(p.id, "runs")
	for i := range p.plan.Workers {
		k := &worker{process: p, world: w, name: fmt.Sprintf("%s/%d", p.id, i+1)}
		k.random = newSource(&w.plan, k.name)
		p.workers.Go(k.live)
	}
	fate := Fault("")
	if w.pause(p.random.around(w.plan.Life)) && !w.isCalm() {
		fate = p.random.pickFault(&w.plan, Crash, Close)
	}
	switch fate {
	case Crash:
		p.crash()
		return
	case Close: // whatever the callers do
	default:
		<-w.stopping
		p.workers.Wait()
	}
	p.close(p.ctx)
}

const bootTimeout = 30 * time.Second

// boot opens the repository and the registry.
func (p *process) boot() error {
	opts := p.plan.Repository
	opts.ClientID, opts.Keys = p.id, sqllock.PlainKeys // a history shows the rows
	ctx, cancel := context.WithTimeout(p.ctx, bootTimeout)
	defer cancel()
	call := p.begin(ctx, "NewRepository")
	repository, err := sqllock.NewRepository(ctx, p.pool.DB, dialect.SQLite(), &opts)
	call.returned(bootTimeout)
	if err != nil {
		p.expect("NewRepository", err, sqllock.ErrDatabase)
		return err
	}
	registryOpts := p.plan.Registry
	registryOpts.Observers = []*observe.Observer{p.observer()}
	if p.plan.Wakes {
		registryOpts.Waker = &p.world.wakers
	}
	p.repository = repository
	p.registry, err = sqllock.NewRegistry(repository, &registryOpts)
	p.expect("NewRegistry", err)
	return err
}

// crash has the process die: its network is cut, and its callers have no leases any more. What
// is left of it in this program is cleared away, and sends nothing.
func (p *process) crash() {
	p.world.note(p.id, "dies")
	p.world.counted()
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.link.die()
	p.appLink.die()
	p.world.witness.died(p)
	p.end()
	p.world.all.Go(func() {
		p.workers.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_ = p.registry.Close(ctx)
		p.closePools()
	})
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

func (p *process) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// runs reports whether its callers may begin something.
func (p *process) runs() bool { return !p.isDead() && !p.isClosed() && !p.world.isStopping() }

// close closes the registry, whatever its callers do, and checks that nothing is left.
func (p *process) close(ctx context.Context) {
	w := p.world
	w.note(p.id, "closes")
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	if w.isSettled() && !w.isBroken() {
		p.checkMemory()
	}
	began := time.Now()
	err := p.registry.Close(ctx)
	closed := time.Now()
	w.note(p.id, "Close: %v", err)
	p.expectSome("Close", err, sqllock.ErrDatabase, sqllock.ErrPinned)
	p.timely("Close", began, closeSettles+2*max(10*time.Second, w.plan.LongestTTL())+slack)
	p.workers.Wait()
	if held := p.registry.Held(); len(held) > 0 && !w.isBroken() {
		w.violated("left", "%s holds %v after Close", p.id, held)
	}
	p.end()
	if w.isSettled() && !w.isBroken() && err != nil {
		w.violated("error", "%s: Close, while nothing is wrong: %v", p.id, err)
	}
	p.closePools()
	if err == nil && !w.isBroken() {
		p.checkNothingLeft()
		for _, c := range p.kept {
			if closed.Before(c.lease.Deadline()) { // otherwise its row may have expired before Close reached it
				w.witness.checkMinHold(c)
			}
		}
	}
}

// keeps notes a claim with a minimum hold that Close has ended.
func (p *process) keeps(c *claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, c)
}

// closeSettles is how long Close waits for what is under way, before it deletes what that has left.
const closeSettles = 10 * time.Second

// mostElements is how many values of one type a registry may keep that is not in use: its
// statements, which are about fifty, and a few for each key. A leak grows with the number of
// acquisitions, of which there are hundreds.
const mostElements = 96

// checkMemory checks that the registry keeps no more than it needs.
func (p *process) checkMemory() {
	p.workers.Wait()
	if _, err := p.registry.ExpireUnusedOlderThan(0); err != nil {
		p.world.violated("error", "%s: ExpireUnusedOlderThan: %v", p.id, err)
	}
	if check.RaceDetector {
		return
	}
	// Nothing else runs in this instant once the others have come to rest.
	p.world.resting <- struct{}{}
	synctest.Wait()
	elements := elementsOf(p.registry)
	<-p.world.resting
	for kind, n := range elements {
		if n > mostElements {
			p.world.violated("memory", "%s keeps %d of %s", p.id, n, kind)
		}
	}
}

// checkNothingLeft checks that no row is left after Close. A statement that arrives after its
// caller has returned may leave one until it expires.
func (p *process) checkNothingLeft() {
	w := p.world
	comesLate := !p.plan.Watches || w.plan.Can(LateRequest)
	if comesLate && !w.isSettled() {
		return
	}
	if left := w.witness.leftBehind(p.id); len(left) > 0 {
		w.violated("left", "%s has left rows: %v", p.id, left)
	}
}

// closePools closes the pools, after which no connection may be left.
func (p *process) closePools() {
	p.link.silence()
	p.appLink.silence()
	err := errors.Join(p.pool.Close(), p.app.Close())
	if err != nil {
		p.world.violated("error", "%s: close the pools: %v", p.id, err)
	}
}
