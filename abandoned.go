package sqllock

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// longestClearing bounds how long a caller whose context has ended waits for
// the row that it may have left behind to be deleted.
const longestClearing = time.Second

// abandoned remembers the holders whose rows may exist although nobody holds
// them: those of acquisitions and releases with an unknown outcome. A row of an
// abandoned holder keeps everyone out until its time-to-live ends, its own client
// too, so it is deleted before that client's next acquisition of the key.
//
// The next acquisition never reuses an abandoned holder: a deletion of it may
// still be on its way.
type abandoned struct {
	some  atomic.Bool // a quick look: whether there is any
	mu    sync.Mutex
	byKey map[string][]abandonedHolder
}

type abandonedHolder struct {
	holder string
	until  time.Time // when the row, if any, has expired
}

// abandon deletes the row of a holder that nobody will use any more, whatever
// has become of ctx, and remembers the holder if it cannot, or if there is no row
// yet: the statement that creates it may come late.
func (r *Repository) abandon(ctx context.Context, p params) {
	until := time.Now().Add(p.ttl)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(p.ttl, longestClearing))
	defer cancel()
	if got, err := r.remove(ctx, p); err != nil || !got.removed {
		r.abandoned.remember(p.name, abandonedHolder{p.holder, until})
	}
}

// abandonLater remembers a holder whose row could not be deleted just now.
func (r *Repository) abandonLater(p params) {
	r.abandoned.remember(p.name, abandonedHolder{p.holder, time.Now().Add(p.ttl)})
}

// clearAbandoned deletes what abandon could not.
func (r *Repository) clearAbandoned(ctx context.Context, key string) error {
	if !r.abandoned.some.Load() {
		return nil
	}
	holders := r.abandoned.take(key)
	for i, t := range holders {
		if _, err := r.Delete(ctx, key, t.holder); err != nil {
			r.abandoned.remember(key, holders[i:]...)
			return err
		}
	}
	return nil
}

// clearAllAbandoned deletes what abandon could not, for all keys.
func (r *Repository) clearAllAbandoned(ctx context.Context) error {
	for _, key := range r.abandoned.keys() {
		if err := r.clearAbandoned(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether there are holders of a key.
func (a *abandoned) has(key string) bool {
	if !a.some.Load() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byKey[key]) > 0
}

// remember keeps holders, and forgets all whose rows have expired meanwhile.
func (a *abandoned) remember(key string, holders ...abandonedHolder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = make(map[string][]abandonedHolder)
	}
	a.byKey[key] = append(a.byKey[key], holders...)
	now := time.Now()
	maps.DeleteFunc(a.byKey, func(_ string, holders []abandonedHolder) bool {
		return !slices.ContainsFunc(holders, func(t abandonedHolder) bool { return t.until.After(now) })
	})
	a.some.Store(len(a.byKey) > 0)
}

// take removes and returns the holders of a key.
func (a *abandoned) take(key string) []abandonedHolder {
	a.mu.Lock()
	defer a.mu.Unlock()
	holders := a.byKey[key]
	delete(a.byKey, key)
	a.some.Store(len(a.byKey) > 0)
	return holders
}

func (a *abandoned) keys() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.byKey))
}
