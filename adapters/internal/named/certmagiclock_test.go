package named_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sqllock/sqllock/adapters/certmagiclock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sqllocktest"
)

// TestTryLockDistinguishesHeldFromFailed has a lock that is held, a context that has ended, and a
// database that fails. All else is that of package named, and is tested there and with certmagic itself in
// adapters/tests.
func TestTryLockDistinguishesHeldFromFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const name = "issue_cert_example.com"
		r := sqllocktest.New(t, nil)
		first, second := certmagiclock.New(r.Registry, "certmagic/"), certmagiclock.New(r.Another(), "certmagic/")
		check.Must(t, first.Lock(t.Context(), name))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		cutOff := errors.New("cut off")
		for _, c := range []struct {
			ctx    context.Context
			broken error
			want   error
		}{
			{t.Context(), nil, nil},
			{ended, nil, context.Canceled},
			{t.Context(), cutOff, cutOff},
		} {
			r.Break(c.broken)
			ok, err := second.TryLock(c.ctx, name)
			check.Is(t, err, c.want)
			if ok {
				t.Errorf("acquired, although it is held: %v", err)
			}
		}
		r.Break(nil)
		check.Must(t, first.Unlock(t.Context(), name))
		ok := check.Value(second.TryLock(t.Context(), name))(t)
		if !ok {
			t.Error("not acquired, although it is free")
		}
		check.Must(t, second.Unlock(t.Context(), name))
	})
}
