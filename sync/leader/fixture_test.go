package leader_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	fixtures "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/sync/leader"
)

func TestMain(m *testing.M) { testmain.Run(m) }

const (
	ttl  = 10 * time.Second
	idle = 500 * time.Millisecond
	role = "scheduler"
)

// A fixture adds electors to the common one.
type fixture struct {
	*fixtures.Fixture

	leading atomic.Int32 // functions whose contexts last
}

var (
	bubbles = fixtures.Bubbles[*fixture](func(f *fixtures.Fixture) *fixture { return &fixture{Fixture: f} })

	inBubble, runInBubble, again, inBothLayouts = bubbles.In, bubbles.Run, bubbles.Again, bubbles.InBothLayouts
)

// A process is a candidate with a repository and a registry of its own.
type process struct {
	*leader.Elector
	f        *fixture
	registry *sqllock.Registry

	began chan *sqllock.Lease // receives the lease of each term
	ended chan error          // receives the cause with which its context has ended

	mu      sync.Mutex
	changes []leader.Leader
	errs    []error
}

// process returns a process whose client id is name.
func (f *fixture) process(name string, opts leader.Options) *process {
	f.Helper()
	return f.processWith(name, opts, sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: idle, NoRenew: true})
}

func (f *fixture) processWith(name string, opts leader.Options, of sqllock.RegistryOptions) *process {
	f.Helper()
	return f.processOn(f.DB.DB, name, opts, of)
}

// networked returns a process whose statements follow a plan.
func (f *fixture) networked(name string) (*process, *flaky.Connector) {
	f.Helper()
	return f.networkedWith(name, sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: idle, NoRenew: true})
}

func (f *fixture) networkedWith(name string, of sqllock.RegistryOptions) (*process, *flaky.Connector) {
	f.Helper()
	db, network := f.Network()
	return f.processOn(db, name, leader.Options{}, of), network
}

func (f *fixture) processOn(db *sqlx.DB, name string, opts leader.Options, of sqllock.RegistryOptions) *process {
	f.Helper()
	registry := f.Registry(db, sqllock.RepositoryOptions{ClientID: name, TTL: of.TTL}, of)
	return f.candidate(registry, opts)
}

// candidate returns another candidate of a registry.
func (f *fixture) candidate(registry *sqllock.Registry, opts leader.Options) *process {
	f.Helper()
	p := &process{f: f, registry: registry, began: make(chan *sqllock.Lease, 100), ended: make(chan error, 100)}
	if opts.OnChange == nil {
		opts.OnChange = func(l leader.Leader) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.changes = append(p.changes, l)
		}
	}
	opts.OnError = func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.errs = append(p.errs, err)
	}
	elector := check.Value(leader.New(registry, role, &opts))(f)
	p.Elector = elector
	return p
}

// lead leads until its context ends.
func (p *process) lead(ctx context.Context, lease *sqllock.Lease) error {
	check.Equal(p.f, "leaders", p.f.leading.Add(1), 1)
	p.began <- lease
	<-ctx.Done()
	if p.IsLeader(ctx) == nil {
		p.f.Error("it leads after the end of its term")
	}
	p.f.leading.Add(-1)
	p.ended <- context.Cause(ctx)
	return ctx.Err()
}

// leadThen leads until its context ends, and then for another d under the lease.
func (p *process) leadThen(d time.Duration) func(context.Context, *sqllock.Lease) error {
	return func(ctx context.Context, lease *sqllock.Lease) error {
		p.began <- lease
		<-ctx.Done()
		p.ended <- context.Cause(ctx)
		time.Sleep(d)
		return lease.Context().Err()
	}
}

// A run is a call of Run.
type run struct {
	f      *fixture
	cancel context.CancelCauseFunc
	result chan error
}

// start calls Run in a goroutine. The test need not stop it.
func (p *process) start(lead func(context.Context, *sqllock.Lease) error) *run {
	p.f.Helper()
	ctx, cancel := context.WithCancelCause(p.f.Context())
	r := &run{p.f, cancel, make(chan error, 1)}
	go func() {
		defer close(r.result)
		r.result <- p.Run(ctx, lead)
	}()
	p.f.Cleanup(func() {
		cancel(nil)
		for range r.result { // until it is closed
		}
	})
	return r
}

var errStop = errors.New("stop")

// stop ends the context of Run with errStop, and returns the result of Run.
func (r *run) stop() error {
	r.f.Helper()
	r.cancel(errStop)
	return <-r.result
}

// newErrors returns what OnError was called with since the last call.
func (p *process) newErrors() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := p.errs
	p.errs = nil
	return errs
}

// seen returns the names of what OnChange was called with, without a row of its own that was read before it knew that
// it leads.
func (p *process) seen() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.changes {
		if l.Me || l.Client != p.registry.Repository().ClientID() {
			names = append(names, name(l))
		}
	}
	return names
}

// name returns the client of a leader, "me", or "-" if there is none.
func name(l leader.Leader) string {
	switch {
	case l.Me:
		return "me"
	case l.Client == "":
		return "-"
	default:
		return l.Client
	}
}

// breakDatabase has all statements on the table fail. The function that it returns mends it.
func (f *fixture) breakDatabase() (mend func()) {
	f.Helper()
	f.exec("ALTER TABLE INT_LOCK RENAME TO AWAY")
	return func() { f.exec("ALTER TABLE AWAY RENAME TO INT_LOCK") }
}

func (f *fixture) exec(statement string) {
	f.Helper()
	f.Must(check.ErrorOf(f.DB.DB.ExecContext(f.Context(), statement)))
}
