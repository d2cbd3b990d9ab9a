package transaction

import (
	"context"
	"database/sql"
	"runtime"
	"slices"
	"sync"
	"weak"
)

// A Gate keeps a connection of a pool free for renewals: a lease that is not renewed in time is lost, and
// everything else can wait. Other statements wait at the gate while they would take the last connection, so none of
// them waits in the pool, which gives a free connection to any of those that wait there.
//
// It counts what sqllock sends. What the application does on the same pool it does not see. If the pool has one
// connection, a renewal waits behind one statement at most.
type Gate struct {
	mu      sync.Mutex
	most    int             // connections that the pool may have, or 0 for as many as it needs
	others  int             // statements that have passed the gate and are no renewals
	kept    int             // connections that are not given back for long: see Keep
	urgent  int             // renewals that are in flight, or wait for their connection
	waiting []chan struct{} // closed when its statement may pass
}

// gates has the gate of each pool: several tables may be over one.
var gates = struct {
	mu sync.Mutex
	of map[weak.Pointer[sql.DB]]*Gate
}{of: make(map[weak.Pointer[sql.DB]]*Gate)}

// GateOf returns the gate of a pool.
func GateOf(db *sql.DB) *Gate {
	gates.mu.Lock()
	defer gates.mu.Unlock()
	pool := weak.Make(db)
	g := gates.of[pool]
	if g == nil {
		g = new(Gate)
		gates.of[pool] = g
		runtime.AddCleanup(db, forget, pool)
	}
	return g
}

func forget(pool weak.Pointer[sql.DB]) {
	gates.mu.Lock()
	defer gates.mu.Unlock()
	delete(gates.of, pool)
}

// urgency is the key of the value that [Urgent] gives a context.
type urgency struct{}

// Urgent returns a context for the statements of a renewal: they do not wait at a [Gate].
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgency{}, true) }

// Keep counts n more connections that are not given back for long, unless there would be more than limit. n may be
// negative.
func (g *Gate) Keep(n, limit int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > 0 && g.kept+n > limit {
		return false
	}
	g.kept += n
	g.admit()
	return true
}

// A pass is that of a statement, until it has given its connection back.
type pass struct {
	gate   *Gate // nil for a pool without one
	urgent bool
}

// enter waits until the statement may take a connection of a pool that has most of them, or as many as it needs if
// that is 0. It returns ctx's error if that ends first.
func (g *Gate) enter(ctx context.Context, most int) (pass, error) {
	if g == nil {
		return pass{}, nil
	}
	p := pass{gate: g, urgent: ctx.Value(urgency{}) != nil}
	g.mu.Lock()
	g.most = most
	if p.urgent {
		g.urgent++
		g.mu.Unlock()
		return p, nil
	}
	if len(g.waiting) == 0 && g.hasRoom() {
		g.others++
		g.mu.Unlock()
		return p, nil
	}
	passes := make(chan struct{})
	g.waiting = append(g.waiting, passes)
	g.mu.Unlock()
	select {
	case <-passes:
		return p, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, passes); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	} else { // both at once
		g.others--
		g.admit()
	}
	return pass{}, ctx.Err()
}

// hasRoom reports whether another statement leaves a connection to renewals. One of them may always pass.
func (g *Gate) hasRoom() bool {
	return g.most <= 0 || g.others == 0 || g.kept+g.others+1+max(1, g.urgent) <= g.most
}

// admit has those that wait pass as long as there is room.
func (g *Gate) admit() {
	for len(g.waiting) > 0 && g.hasRoom() {
		close(g.waiting[0])
		g.waiting = slices.Delete(g.waiting, 0, 1)
		g.others++
	}
}

// leave is called when the connection was given back.
func (p pass) leave() {
	g := p.gate
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.urgent {
		g.urgent--
	} else {
		g.others--
	}
	if len(g.waiting) > 0 {
		g.admit()
	}
}
