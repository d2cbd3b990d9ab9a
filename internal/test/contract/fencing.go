package contract

import (
	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// fencingTests are about the tokens with which a storage system distinguishes an old holder from a new one.
var fencingTests = []test{
	inEachCell("TokensRiseAcrossACrashAndADeletion", func(f *fixture) {
		r := f.process()
		f.acquireRow(r, "k", ttl) // and crashes
		f.expire()
		last := f.checkHigher(f.abandon(), 0)
		f.expire()
		f.must(check.ErrorOf(r.DeleteExpired(f.Context())))
		last = f.checkHigher(f.abandon(), last)
		f.expire()
		lease := f.acquire(f.lock(ttl)) // a storage compares tokens, whether they come from a Lease or an Acquisition
		last = f.checkHigher(lease.Token(), last)
		f.must(lease.Unlock(f.Context()))
		f.checkHigher(f.abandon(), last)
	}),
	once("RenewalAndReentryKeepTheToken", func(f *fixture) {
		l := f.lock(ttl)
		outer := f.acquire(l)
		token := f.checkHigher(outer.Token(), 0)
		f.must(outer.Renew(f.Context()))
		inner := check.Value(l.Lock(outer.Context()))(f)
		equal(f, "token", inner.Token(), token)
		equal(f, "token", outer.Token(), token)
		f.must(inner.Unlock(f.Context()))
		f.must(outer.Unlock(f.Context()))
	}),
	inEachCell("WithoutFencingThereIsNoTokenAndAllElseIsTheSame", func(f *fixture) {
		unfenced := f.repository(sqllock.RepositoryOptions{TTL: ttl, DisableFencing: true})
		registry := f.registryOver(unfenced, sqllock.RegistryOptions{TTL: ttl, NoRenew: true})
		rival := f.lock(ttl)
		for range 2 {
			lease := f.acquire(f.obtain(registry))
			equal(f, "token", lease.Token(), 0)
			f.is(check.ErrorOf(rival.TryLock(f.Context())), sqllock.ErrNotAcquired)
			f.must(lease.Unlock(f.Context()))
			lease = f.acquire(rival)
			f.is(check.ErrorOf(f.obtain(registry).TryLock(f.Context())), sqllock.ErrNotAcquired)
			f.must(lease.Unlock(f.Context()))
		}
	}),
}

// abandon acquires the row in another process, which never releases it, and returns the token.
func (f *fixture) abandon() int64 {
	f.Helper()
	r := f.process()
	got := check.Value(r.Acquire(f.Context(), "k", r.NewHolder(), ttl))(f)
	equal(f, "acquired", got.Acquired, true)
	return got.Token
}

func (f *fixture) checkHigher(token, last int64) int64 {
	f.Helper()
	if token <= last {
		f.Fatalf("token %d after %d", token, last)
	}
	return token
}
