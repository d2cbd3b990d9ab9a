package sqllock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/expiring"
)

const (
	// longestClearing bounds how long a caller whose context has ended waits for
	// the row that it may have left behind to be deleted.
	longestClearing = time.Second
	// longestStraggler is how long after its caller has given up a statement may
	// create a row, as far as that is reckoned with: as long as Oracle's MySQL has it
	// wait for a row that is pinned, and a bit.
	longestStraggler = time.Minute
)

// abandoned remembers, by LOCK_KEY, the holders whose rows may exist although no caller
// holds them: those of acquisitions and releases with an unknown outcome. A row of an
// abandoned holder keeps everyone out until its time-to-live ends, its own client
// too, so it is deleted before that client's next acquisition of the key.
//
// The next acquisition never reuses an abandoned holder: a deletion of it may
// still be on its way.
type abandoned struct {
	// present are those whose rows may be there: the deletion failed. They are
	// remembered for as long as the row lasts.
	present expiring.Map[string, []abandonedHolder]
	// absent are those whose rows were not there, but may come yet.
	absent expiring.Map[string, []abandonedHolder]
}

type abandonedHolder struct {
	name   string // the key as the caller wrote it
	holder string
	until  time.Time // when it is forgotten
}

// abandon deletes the row of a holder that no caller will use any more, whatever
// has become of ctx, and remembers the holder if it cannot, or if there is no row
// yet: the statement that creates it may come late.
func (r *Repository) abandon(ctx context.Context, p params) {
	until := time.Now().Add(p.ttl)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(p.ttl, longestClearing))
	defer cancel()
	switch got, err := r.remove(ctx, p); {
	case err != nil:
		remember(&r.abandoned.present, p.lockKey, abandonedHolder{p.name, p.holder, until})
	case !got.removed:
		until = time.Now().Add(min(p.ttl, longestStraggler))
		remember(&r.abandoned.absent, p.lockKey, abandonedHolder{p.name, p.holder, until})
	}
}

// abandonLater remembers a holder whose row could not be deleted just now.
func (r *Repository) abandonLater(p params) {
	remember(&r.abandoned.present, p.lockKey, abandonedHolder{p.name, p.holder, time.Now().Add(p.ttl)})
}

// clearAbandoned deletes what abandon could not.
func (r *Repository) clearAbandoned(ctx context.Context, lockKey string) error {
	holders := r.abandoned.take(lockKey)
	for i, t := range holders {
		if _, err := r.remove(ctx, r.paramsOf(t.name, lockKey, t.holder, MinTTL)); err != nil {
			for _, left := range holders[i:] {
				remember(&r.abandoned.present, lockKey, left)
			}
			return err
		}
	}
	return nil
}

// clearAllAbandoned deletes what abandon could not, for all keys. A row that is pinned does
// not keep it from the others; a database that does not answer does.
func (r *Repository) clearAllAbandoned(ctx context.Context) (err error) {
	for _, lockKey := range append(r.abandoned.present.Keys(), r.abandoned.absent.Keys()...) {
		failed := r.clearAbandoned(ctx, lockKey)
		err = errors.Join(err, failed)
		if failed != nil && !errors.Is(failed, ErrPinned) {
			break
		}
	}
	return err
}

// has reports whether there are holders of a key.
func (a *abandoned) has(lockKey string) bool {
	_, present := a.present.Get(lockKey)
	_, absent := a.absent.Get(lockKey)
	return present || absent
}

// remember adds a holder to those of its key.
func remember(m *expiring.Map[string, []abandonedHolder], lockKey string, t abandonedHolder) {
	m.Put(lockKey, t.until, func(holders []abandonedHolder) []abandonedHolder {
		return append(withoutForgotten(holders), t)
	})
}

// take removes and returns the holders of a key.
func (a *abandoned) take(lockKey string) []abandonedHolder {
	present, _ := a.present.Take(lockKey)
	absent, _ := a.absent.Take(lockKey)
	return withoutForgotten(append(present, absent...))
}

func withoutForgotten(holders []abandonedHolder) []abandonedHolder {
	now := time.Now()
	return slices.DeleteFunc(holders, func(t abandonedHolder) bool { return !now.Before(t.until) })
}
