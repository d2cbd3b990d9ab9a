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

// abandoned remembers the tokens whose rows may exist although nobody holds
// them: those of acquisitions and releases with an unknown outcome. A row of an
// abandoned token keeps everyone out until its time-to-live ends, its own client
// too, so it is deleted before that client's next acquisition of the key.
//
// The next acquisition never reuses an abandoned token: a deletion of it may
// still be on its way.
type abandoned struct {
	some  atomic.Bool // a quick look: whether there is any
	mu    sync.Mutex
	byKey map[string][]abandonedToken
}

type abandonedToken struct {
	token string
	until time.Time // when the row, if any, has expired
}

// abandon deletes the row of a token that nobody will use any more, whatever
// has become of ctx, and remembers the token if it cannot, or if there is no row
// yet: the statement that creates it may come late.
func (r *Repository) abandon(ctx context.Context, key, token string, ttl time.Duration) {
	until := time.Now().Add(ttl)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(ttl, longestClearing))
	defer cancel()
	if deleted, err := r.Delete(ctx, key, token); err != nil || !deleted {
		r.abandoned.remember(key, abandonedToken{token, until})
	}
}

// abandonLater remembers a token whose row could not be deleted just now.
func (r *Repository) abandonLater(key, token string, ttl time.Duration) {
	r.abandoned.remember(key, abandonedToken{token, time.Now().Add(ttl)})
}

// clearAbandoned deletes what abandon could not.
func (r *Repository) clearAbandoned(ctx context.Context, key string) error {
	if !r.abandoned.some.Load() {
		return nil
	}
	tokens := r.abandoned.take(key)
	for i, t := range tokens {
		if _, err := r.Delete(ctx, key, t.token); err != nil {
			r.abandoned.remember(key, tokens[i:]...)
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

// remember keeps tokens, and forgets all whose rows have expired meanwhile.
func (a *abandoned) remember(key string, tokens ...abandonedToken) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = make(map[string][]abandonedToken)
	}
	a.byKey[key] = append(a.byKey[key], tokens...)
	now := time.Now()
	maps.DeleteFunc(a.byKey, func(_ string, tokens []abandonedToken) bool {
		return !slices.ContainsFunc(tokens, func(t abandonedToken) bool { return t.until.After(now) })
	})
	a.some.Store(len(a.byKey) > 0)
}

// take removes and returns the tokens of a key.
func (a *abandoned) take(key string) []abandonedToken {
	a.mu.Lock()
	defer a.mu.Unlock()
	tokens := a.byKey[key]
	delete(a.byKey, key)
	a.some.Store(len(a.byKey) > 0)
	return tokens
}

func (a *abandoned) keys() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.byKey))
}
