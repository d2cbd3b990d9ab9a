package sqllock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// OnRenewal may close the registry: what to do when renewals fail.
func TestOnRenewalMayCloseTheRegistry(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newScene(t, sqllock.Statement)
		closed := make(chan error, 1)
		var calls atomic.Int64
		registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{
			TTL: beatTTL, AutoRenew: true,
			OnRenewal: func(int, error) {
				calls.Add(1)
				closed <- s.registry.Close(context.Background())
			},
		})
		s.registry = registry
		lease, err := obtain(t, registry, "k").Lock(t.Context())
		must(t, err)
		time.Sleep(beatTTL)
		select {
		case err := <-closed:
			must(t, err)
		default:
			t.Fatal("Close waits for OnRenewal, which waits for Close")
		}
		if !errors.Is(context.Cause(lease.Context()), sqllock.ErrClosed) || calls.Load() != 1 {
			t.Error(context.Cause(lease.Context()), calls.Load())
		}
	})
}
