package contract

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
)

// fencingTests are about the tokens by which a storage tells an old holder from a
// new one.
var fencingTests = []test{
	{"TokensRiseFromHolderToHolder", func(w *world) {
		first, second := w.lock(ttl), w.lock(ttl)
		var last int64
		for i := range 6 {
			l := first
			if i%2 == 1 {
				l = second
			}
			lease := w.acquire(l)
			last = w.higher(lease.Token(), last)
			w.must(lease.Unlock(w.Context()))
		}
	}},
	{"TokensRiseOverACrashAndOverRemoval", func(w *world) {
		r := w.process()
		w.taken(r, "k", short) // and never heard of again
		w.untilExpired(r, "k", short)
		last := w.higher(w.token(short), 0)
		w.untilExpired(r, "k", short)
		_, err := r.DeleteExpired(w.Context(), short)
		w.must(err)
		w.higher(w.token(short), last)
	}},
	{"TokensRiseInACrowd", func(w *world) {
		var last int64
		w.crowd(3, 3, func(r *sqllock.Registry) error {
			for range 5 {
				lease, err := w.obtain(r).Lock(w.Context())
				if err != nil {
					return err
				}
				token := lease.Token()
				if token <= last {
					return fmt.Errorf("token %d after %d", token, last)
				}
				last = token
				if err := lease.Unlock(w.Context()); err != nil {
					return err
				}
			}
			return nil
		})
	}},
	{"RenewalAndReentryKeepTheToken", func(w *world) {
		l := w.lock(ttl)
		outer := w.acquire(l)
		token := w.higher(outer.Token(), 0)
		w.must(outer.Renew(w.Context()))
		inner, err := l.Lock(outer.Context())
		w.must(err)
		same(w, "token", inner.Token(), token)
		same(w, "token", outer.Token(), token)
		w.must(inner.Unlock(w.Context()))
		w.must(outer.Unlock(w.Context()))
	}},
	{"AFailedTryHasNoToken", func(w *world) {
		holder, r := w.taken(w.process(), "k", ttl), w.process()
		got, err := r.Acquire(w.Context(), "k", r.NewHolder(), ttl)
		w.must(err)
		same(w, "token", got.Token, 0)
		same(w, "holder", got.Row.Holder, holder)
	}},
	{"WithoutFenceThereIsNoTokenAndAllElseIsTheSame", func(w *world) {
		unfenced, err := sqllock.NewRepository(w.cell.DB, w.cell.Dialect, &sqllock.RepositoryOptions{
			Region: w.region, Isolation: w.cell.Isolation, WithoutFence: true,
		})
		w.must(err)
		registry, err := sqllock.NewRegistry(unfenced, &sqllock.RegistryOptions{TTL: ttl})
		w.must(err)
		rival := w.lock(ttl)
		for range 2 {
			lease := w.acquire(w.obtain(registry))
			same(w, "token", lease.Token(), 0)
			_, err = rival.TryLock(w.Context())
			w.is(err, sqllock.ErrNotAcquired)
			w.must(lease.Unlock(w.Context()))
			lease = w.acquire(rival)
			_, err = w.obtain(registry).TryLock(w.Context())
			w.is(err, sqllock.ErrNotAcquired)
			w.must(lease.Unlock(w.Context()))
		}
		w.must(registry.Close(context.Background()))
	}},
}

// token acquires the row for another process that never gives it back.
func (w *world) token(ttl time.Duration) int64 {
	w.Helper()
	r := w.process()
	got, err := r.Acquire(w.Context(), "k", r.NewHolder(), ttl)
	w.must(err)
	same(w, "acquired", got.Acquired, true)
	return got.Token
}

func (w *world) higher(token, last int64) int64 {
	w.Helper()
	if token <= last {
		w.Fatalf("token %d after %d", token, last)
	}
	return token
}
