package leader_test

import (
	"context"
	"database/sql"
	"errors"
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

const (
	ttl  = 10 * time.Second
	idle = 500 * time.Millisecond
	role = "scheduler"
)

// A fixture is what one test works with: a database in virtual time, and processes on it.
type fixture struct {
	*testing.T
	db *dbtest.DB

	leading atomic.Int32 // functions whose contexts last
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, test func(f *fixture)) {
	t.Helper()
	inBubbleWith(t, dialect.Spring7, test)
}

// inBothLayouts is inBubble over a table of each layout.
func inBothLayouts(t *testing.T, test func(f *fixture)) {
	t.Helper()
	for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			inBubbleWith(t, layout, test)
		})
	}
}

func inBubbleWith(t *testing.T, layout dialect.Layout, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Electors poll, so a test that waits in vain would not deadlock.
		limit := time.AfterFunc(time.Hour, func() { panic(t.Name() + " waits in vain") })
		defer limit.Stop()
		test(&fixture{T: t, db: virtual.Migrated(t, layout)})
	})
}

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
	return f.processWith(name, opts, sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: idle})
}

func (f *fixture) processWith(name string, opts leader.Options, of sqllock.RegistryOptions) *process {
	f.Helper()
	return f.processOn(f.db.DB, name, opts, of)
}

// networked returns a process whose statements follow a plan.
func (f *fixture) networked(name string) (*process, *flaky.Connector) {
	f.Helper()
	return f.networkedWith(name, sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: idle})
}

func (f *fixture) networkedWith(name string, of sqllock.RegistryOptions) (*process, *flaky.Connector) {
	f.Helper()
	network := flaky.New(f.db.DB.Driver(), f.db.DSN)
	db := sqlx.NewDb(sql.OpenDB(network), "sqlite")
	f.Cleanup(func() { _ = db.Close() })
	return f.processOn(db, name, leader.Options{}, of), network
}

func (f *fixture) processOn(db *sqlx.DB, name string, opts leader.Options, of sqllock.RegistryOptions) *process {
	f.Helper()
	repository, err := sqllock.NewRepository(f.Context(), db.DB, f.db.Dialect, &sqllock.RepositoryOptions{ClientID: name, TTL: of.TTL})
	f.must(err)
	registry, err := sqllock.NewRegistry(repository, &of)
	f.must(err)
	f.Cleanup(func() { _ = registry.Close(context.Background()) })
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
	elector, err := leader.New(registry, role, &opts)
	f.must(err)
	p.Elector = elector
	return p
}

// lead leads until its context ends.
func (p *process) lead(ctx context.Context, lease *sqllock.Lease) error {
	if n := p.f.leading.Add(1); n != 1 {
		p.f.Errorf("%d leaders", n)
	}
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

// seen returns the names of what OnChange was called with.
func (p *process) seen() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.changes {
		names = append(names, name(l))
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
	_, err := f.db.DB.ExecContext(f.Context(), statement)
	f.must(err)
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// is checks that err wraps wanted.
func (f *fixture) is(err, wanted error) {
	f.Helper()
	if !errors.Is(err, wanted) {
		f.Fatalf("error %v, want %v", err, wanted)
	}
}

// takes checks how much virtual time has passed since began.
func (f *fixture) takes(what string, began time.Time, least, most time.Duration) {
	f.Helper()
	if d := time.Since(began); d < least || d > most {
		f.Errorf("%s took %v, want %v to %v", what, d, least, most)
	}
}
