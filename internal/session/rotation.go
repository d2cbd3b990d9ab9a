package session

import (
	"context"
	"database/sql/driver"
	"sync"
	"time"
)

const (
	// connectionLife is how long a connection is used. A proxy, a name or a switchover may have led it to a server
	// that is no longer the right one.
	connectionLife = 5 * time.Minute
	// successorPause is the time between attempts to connect a successor.
	successorPause = 10 * time.Second
	// successorIdle is how long a successor may wait before it is asked whether it is still there, and successorPing
	// how long its answer may take.
	successorIdle = 20 * time.Second
	successorPing = time.Second
)

// A rotation is the connector of a pool. It replaces old connections, but never closes a healthy one before its
// successor is connected: others may have used up the server's limit, and all leases would be lost.
// (SetConnMaxLifetime of database/sql closes first.)
//
// The successor is connected in the background, and waits for an old connection to be given back to the pool. That
// one is closed then, and the pool gets the successor when it next needs a connection.
type rotation struct {
	driver.Connector

	onNotice func(c driver.Conn, note func(routine string)) // nil if there are no notices
	preparer preparer                                       // that each connection begins with
	rewrite  func(text string) string                       // of each statement

	background context.Context
	end        context.CancelFunc
	running    sync.WaitGroup

	mu         sync.Mutex
	successor  *conn
	taken      bool // an old connection has been closed for it
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
	r.mu.Lock()
	next := r.successor
	r.successor, r.taken = nil, false
	r.mu.Unlock()
	if next != nil {
		return next, nil
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
	c := &conn{session: s, preparer: r.preparer, rotation: r, since: time.Now()}
	if r.onNotice != nil {
		r.onNotice(inner, c.noteNotice)
	}
	return c, nil
}

// replaces reports whether c is to be closed because it is old. If it has no successor, one is made.
func (r *rotation) replaces(c *conn) bool {
	if time.Since(c.since) < connectionLife {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.successor != nil && !r.taken {
		if r.successor.isThere(r.background) {
			r.taken = true
			return true
		}
		broken := r.successor
		r.successor = nil
		r.running.Go(func() { _ = broken.Close() })
	}
	if r.successor == nil && !r.connecting && time.Since(r.tried) >= successorPause && r.background.Err() == nil {
		r.connecting, r.tried = true, time.Now()
		r.running.Go(r.connectSuccessor)
	}
	return false
}

// isThere reports whether a connection that waits has not been closed.
func (c *conn) isThere(ctx context.Context) bool {
	if time.Since(c.since) < successorIdle {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, successorPing)
	defer cancel()
	return c.Ping(ctx) == nil
}

func (r *rotation) connectSuccessor() {
	ctx, cancel := context.WithTimeout(r.background, OpenTimeout)
	defer cancel()
	made, _ := r.connect(ctx) // if it fails, the old connections go on
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connecting = false
	if next, ok := made.(*conn); ok {
		r.successor, r.taken = next, false
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
	if r.successor == nil {
		return nil
	}
	return r.successor.Close()
}
