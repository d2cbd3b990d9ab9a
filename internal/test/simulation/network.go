package simulation

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
)

// The errors of the network, as a driver passes them on.
var (
	errReset   = errors.New("simulated: connection reset by peer")
	errRefused = errors.New("simulated: connection refused")
	errSilent  = errors.New("simulated: connection timed out")
)

// A link is the network between one process and the database. It is a driver.Connector.
type link struct {
	world   *World
	process string // for the history
	client  string // the process's client id
	watches bool   // the driver watches contexts
	// deferred transactions become writers by their first statement that writes.
	deferred bool

	mu    sync.Mutex
	dead  chan struct{} // closed when the process has died
	until map[Fault]time.Time
	open  int // connections

	inFlight atomic.Int64 // statements, and connections that are being opened
	inBurst  atomic.Bool  // the last statement has met a fault, and they come in bursts
}

func newLink(w *World, client, use string, watches bool) *link {
	return &link{
		world: w, process: client + use, client: client, watches: watches,
		dead: make(chan struct{}), until: make(map[Fault]time.Time),
	}
}

// Driver implements driver.Connector.
func (l *link) Driver() driver.Driver { return virtualsqlite.Driver{} }

// Connect implements driver.Connector.
func (l *link) Connect(ctx context.Context) (driver.Conn, error) {
	l.inFlight.Add(1)
	defer l.inFlight.Add(-1)
	ctx = l.watched(ctx)
	return l.connect(ctx)
}

func (l *link) connect(ctx context.Context) (*conn, error) {
	f := l.fate(opConnect, "")
	if err := l.travel(ctx, f, f.before); err != nil {
		return nil, err
	}
	if f.fault == Broken || f.fault == BadConn {
		return nil, errReset
	}
	generation, inner, err := l.world.connect(l.deferred)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.open++
	l.mu.Unlock()
	c := &conn{server: inner, link: l, generation: generation}
	if err := l.travel(ctx, f, f.after); err != nil {
		c.closeServer()
		return nil, err
	}
	return c, nil
}

// silence waits until no statement is under way: drivers that do not watch their contexts leave
// some behind.
func (l *link) silence() {
	for l.inFlight.Load() > 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// watched returns what the driver watches of a context.
func (l *link) watched(ctx context.Context) context.Context {
	if l.watches {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// begin begins a fault that lasts for a while.
func (l *link) begin(f Fault, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until[f] = time.Now().Add(d)
}

// left returns how long a fault still lasts.
func (l *link) left(f Fault) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.until[f])
}

// die cuts the process off for ever.
func (l *link) die() { close(l.dead) }

func (l *link) isDead() bool { return isClosed(l.dead) }

// travel is a statement or an answer under way for d. The error says that it did not arrive.
func (l *link) travel(ctx context.Context, f fate, d time.Duration) error {
	if err := l.wait(ctx, d); err != nil {
		return err
	}
	for l.left(Stall) > 0 {
		if err := l.wait(ctx, l.left(Stall)+f.random.latency(&l.world.plan)); err != nil {
			return err
		}
	}
	switch {
	case l.left(Away) > 0:
		return errRefused
	case l.left(Silence) > 0:
		return l.hang(ctx)
	default:
		return nil
	}
}

// hang waits for something that never comes.
func (l *link) hang(ctx context.Context) error {
	if err := l.wait(ctx, unansweredFor); err != nil {
		return err
	}
	return errSilent
}

// wait waits for d. It returns an error if the process dies, or if ctx ends.
func (l *link) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		if l.isDead() {
			return errReset
		}
		return nil
	case <-l.dead:
		return errReset
	case <-ctx.Done():
		return ctx.Err()
	}
}

// note notes something in the history, unless the process is dead: what is left of it does
// nothing any more.
func (l *link) note(format string, args ...any) {
	if !l.isDead() {
		l.world.note(l.process, format, args...)
	}
}
