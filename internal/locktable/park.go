package locktable

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/stmt"
)

// A parked row is free, and stays where it is: expired, with a holder of the form of that of a minimum hold: see
// [clientid.IsKept]. The next acquisition changes it, and neither deletes nor inserts. While an old snapshot keeps dead
// versions of rows, an INSERT reads all versions of its key since then, twice. The change of a row that is there finds
// the newest version at once, and is mostly written beside it, into no index.
//
// The statements Park and Take promise what Delete and Acquire do: any process may take over a row that it finds expired. A process
// that expects a parked row and finds none, or one that another process has changed, goes on as if none had been
// parked. It deletes its parked rows that it has not used for a while: see [leftovers.DeleteParked].

// maxParked is how many rows of a process are parked at most. Where more keys are busy, none is: a page of the table has
// room for some sixty versions, and with many keys on it a change seldom finds room beside its version. Then it costs
// an entry in the index and as much as an INSERT, twice for each pair.
const maxParked = 16

// crowdedFor is how long no row is parked after one would have been one too many.
const crowdedFor = time.Minute

// A parked has the rows that this process has parked, or is about to park, by LOCK_KEY. Other processes may have taken
// them since. The zero value is empty.
type parked struct {
	n       atomic.Int64 // how many there are
	mu      sync.Mutex
	rows    map[string]parkedRow
	crowded time.Time // until then none is parked
}

type parkedRow struct {
	holder string    // what stands in CLIENT_ID, unless another caller has taken the row
	since  time.Time // when it was parked last
}

// holderOf returns the holder of the row of a key that this process has parked, or "".
func (p *parked) holderOf(lockKey string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows[lockKey].holder
}

// claimsOf returns claims of the rows of keys that this process has parked.
func (p *parked) claimsOf(lockKeys []string) (claims []Claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, lockKey := range lockKeys {
		if row, there := p.rows[lockKey]; there {
			claims = append(claims, Claim{LockKey: lockKey, Holder: row.holder})
		}
	}
	return claims
}

// admits reports whether the row of a key may be parked, and then notes that it is. It is noted before it is sent, since
// it may be applied without an answer.
func (p *parked) admits(lockKey, holder string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if _, there := p.rows[lockKey]; !there && len(p.rows) >= maxParked {
		p.crowded = now.Add(crowdedFor)
	}
	if !now.After(p.crowded) {
		return false
	}
	p.putLocked(lockKey, parkedRow{holder, now})
	return true
}

// note notes that a row is parked by another holder than it was to be.
func (p *parked) note(lockKey, holder string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.putLocked(lockKey, parkedRow{holder, time.Now()})
}

func (p *parked) putLocked(lockKey string, row parkedRow) {
	if p.rows == nil {
		p.rows = make(map[string]parkedRow)
	}
	p.rows[lockKey] = row
	p.n.Store(int64(len(p.rows)))
}

// forget forgets the row of a key that was parked by a holder: it is gone, or another caller has it.
func (p *parked) forget(lockKey, holder string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows[lockKey].holder == holder {
		delete(p.rows, lockKey)
		p.n.Store(int64(len(p.rows)))
	}
}

// before returns claims of the rows that were parked before an instant.
func (p *parked) before(instant time.Time) (claims []Claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for lockKey, row := range p.rows {
		if row.since.Before(instant) {
			claims = append(claims, Claim{LockKey: lockKey, Holder: row.holder})
		}
	}
	return claims
}

// HasParked reports whether this process may have parked rows.
func (l *leftovers) HasParked() bool { return l.releases.parked.n.Load() > 0 }

// DeleteParked deletes the rows that this process has parked before an instant and that no process has taken since.
// After an error they are still known.
func (l *leftovers) DeleteParked(ctx context.Context, before time.Time) error {
	claims := l.releases.parked.before(before)
	if err := l.discardAll(ctx, claims); err != nil {
		if dbcall.Is(err, dbcall.PinnedRow) {
			return nil // no caller waits for a free row: it is deleted the next time
		}
		return err
	}
	for _, c := range claims {
		l.releases.parked.forget(c.LockKey, c.Holder)
	}
	return nil
}

// mayPark reports whether the row of a claim may be parked, and then counts it among the parked rows.
func (r *releases) mayPark(c Claim) bool {
	return r.statements.Park.Text != "" && r.parked.admits(c.LockKey, r.ids.NextKept())
}

// parkOne parks one row. If there is none to be parked, a deletion tells what has become of it.
func (r *releases) parkOne(ctx context.Context, c Claim) batch.Outcome[bool] {
	v := stmt.Values{Claim: c, Next: r.parked.holderOf(c.LockKey)} // a batch may have left it out after it had parked it
	if v.Next == "" {
		return r.releaseOne(ctx, c)
	}
	done, err := r.changeOne(ctx, r.pool.Try(), r.statements.Park, v)
	if err == nil && done.n == 0 {
		o := r.releaseOne(ctx, c)
		if o.Err == nil && o.Value {
			r.parked.forget(c.LockKey, v.Next)
		}
		o.Unknown = o.Unknown || done.resent
		return o
	}
	return batch.Outcome[bool]{Value: err == nil, Err: err, Unknown: done.resent}
}

// parkMany parks the rows of a batch. It leaves out those that it did not find, or found pinned.
func (r *releases) parkMany(ctx context.Context, claims []Claim, outcomes []batch.Outcome[bool]) {
	v := stmt.Together(claims)
	v.Next = r.ids.NextKept()
	for _, c := range claims {
		r.parked.note(c.LockKey, v.Next)
	}
	rows, resent, err := r.changeMany(ctx, r.pool.Try(), r.statements.ParkAll, v)
	gone := make(map[stmt.RowID]bool, len(rows))
	for _, c := range claims {
		if rows[stmt.RowID{LockKey: c.LockKey, Holder: v.Next}] {
			gone[c.ID()] = true
		}
	}
	r.settle(ctx, claims, outcomes, gone, resent, err)
}
