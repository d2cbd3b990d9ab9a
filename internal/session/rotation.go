package session

import (
	"context"
	"database/sql/driver"
	"sync"
	"time"
)

const (
	// connectionLife is how long a session is used. A proxy, a name or a switchover may have led it to a server
	// that is no longer the right one.
	connectionLife = 5 * time.Minute
	// successorPause is the time between attempts to connect a successor.
	successorPause = 10 * time.Second
	// successorIdle is how long a successor may wait before it is asked whether it is still there, and successorPing
	// how long its answer may take.
	successorIdle = 20 * time.Second
	successorPing = time.Second
)

// A rotation is the connector of a pool. It replaces old sessions, but never closes a healthy one before its
// successor is connected: others may have used up the server's limit, and all leases would be lost.
// (SetConnMaxLifetime of database/sql closes first.)
//
// The successor is connected in the background. The next connection with an old session that is given back to the pool
// goes on with it, whichever connections the pool gives out next, and the old session is closed.
type rotation struct {
	driver.Connector

	onNotice func(c driver.Conn, note func(routine string)) // nil if there are no notices
	preparer preparer                                       // that each connection begins with
	rewrite  func(text string) string                       // of each statement

	background context.Context
	end        context.CancelFunc
	running    sync.WaitGroup

	mu         sync.Mutex
	successor  *life
	connecting bool
	tried      time.Time
}

// rotate returns a rotation of the target's connections.
func (t Target) rotate(c driver.Connector, s Settings) *rotation {
	r := &rotation{Connector: c, onNotice: t.OnNotice, preparer: preparer{isLost: t.IsLost}, rewrite: s.Rewrite}
	if t.Prepares && s.kept != nil {
		r.preparer.prepares = s.kept.Load
	}
	r.background, r.end = context.WithCancel(context.Background())
	return r
}

// Connect implements driver.Connector.
func (r *rotation) Connect(ctx context.Context) (driver.Conn, error) {
	if next := r.takeSuccessor(); next != nil {
		return &conn{next, r}, nil
	}
	return r.connect(ctx)
}

func (r *rotation) connect(ctx context.Context) (driver.Conn, error) {
	inner, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s, ok := inner.(session)
	if !ok {
		return inner, nil
	}
	l := &life{session: s, preparer: r.preparer, since: time.Now()}
	if r.onNotice != nil {
		r.onNotice(inner, l.noteNotice)
	}
	return &conn{l, r}, nil
}

// renew gives c the successor if its session is old. If there is no successor, one is connected.
func (r *rotation) renew(c *conn) {
	if time.Since(c.since) < connectionLife {
		return
	}
	if next := r.takeSuccessor(); next != nil {
		old := c.life
		c.life = next
		_ = old.Close()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.successor == nil && !r.connecting && time.Since(r.tried) >= successorPause && r.background.Err() == nil {
		r.connecting, r.tried = true, time.Now()
		r.running.Go(r.connectSuccessor)
	}
}

// takeSuccessor returns the successor, or nil if there is none, or it is not there any more.
func (r *rotation) takeSuccessor() *life {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.successor
	r.successor = nil
	if next != nil && !next.isThere(r.background) {
		r.running.Go(func() { _ = next.Close() })
		return nil
	}
	return next
}

// isThere reports whether a session that waits has not been closed.
func (l *life) isThere(ctx context.Context) bool {
	if time.Since(l.since) < successorIdle {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, successorPing)
	defer cancel()
	return l.Ping(ctx) == nil
}

func (r *rotation) connectSuccessor() {
	ctx, cancel := context.WithTimeout(r.background, OpenTimeout)
	defer cancel()
	made, _ := r.connect(ctx) // if it fails, the old connections go on
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connecting = false
	if next, ok := made.(*conn); ok {
		r.successor = next.life
	}
}

// Close implements io.Closer: the pool calls it when it is closed.
func (r *rotation) Close() error {
	r.mu.Lock()
	r.end() // no attempt to connect begins after that
	r.mu.Unlock()
	r.running.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.successor
	r.successor = nil // a connection may still be given back
	if last == nil {
		return nil
	}
	return last.Close()
}
