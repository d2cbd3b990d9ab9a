// Package asynqlock is for applications of github.com/hibiken/asynq: tasks of one key are processed
// one at a time, over all servers and queues, and a scheduler runs on one instance alone.
//
//	mux.Use(asynqlock.Middleware(registry, func(task *asynq.Task) string {
//		return task.Type()
//	}, nil))
//	server := asynq.NewServer(redis, asynq.Config{
//		IsFailure:      asynqlock.IsFailure,
//		RetryDelayFunc: asynqlock.RetryDelay,
//	})
//
// asynq.Unique is another thing: it keeps a task from being enqueued twice.
package asynqlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/sqllock/sqllock"
)

// Options are the settings of the middleware. A zero field means its default.
type Options struct {
	// Wait is how long a task waits for its lock before it is put off. It occupies one of the
	// server's workers. By default it does not wait.
	Wait time.Duration
}

// Middleware returns middleware that processes a task under the lock of its key. A task for which
// key returns "" is processed without a lock. opts may be nil.
//
// The context of the task is then that of the lease: it ends with cause [sqllock.ErrLockLost] before
// another task of the key can be processed, and carries the lease for [sqllock.Registry.LeaseFrom].
// The lease is renewed automatically, whatever the registry's options say. Its time-to-live is how
// long the lock stays taken after a server has crashed.
//
// If the lock is held, the task is not processed, and the error is a [sqllock.ErrNotAcquired]. If
// the database fails it is a [sqllock.ErrDatabase], and [sqllock.ErrClosed] if the registry is
// closed. asynq puts the task off, and counts that as a retry unless [asynq.Config].IsFailure is
// [IsFailure].
//
// asynq archives a task that returns any error and has no retries left. So such a task waits for its
// lock, for as long as its context lasts: see [asynq.Timeout], which is 30 minutes by default. With
// [sqllock.RegistryOptions].WaitThroughOutages it also waits while the database is down. Close the
// registry after the server has shut down: asynq then has put waiting tasks back into their queues, and
// would have archived such a task if its registry had been closed before.
//
// A bad key gives a [sqllock.ErrInvalid], and so do a negative Wait and a nil registry or key. This is
// a failure of the task. So is its own error, joined with an [sqllock.ErrLockLost] if the lease was
// lost, also if the task returned nil. If only the release of the lock fails, the task is done, and
// the lock stays taken until its time-to-live ends.
func Middleware(registry *sqllock.Registry, key func(*asynq.Task) string, opts *Options) asynq.MiddlewareFunc {
	m := middleware{registry: registry, key: key}
	if opts != nil {
		m.opts = *opts
	}
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error { return m.process(ctx, task, next) })
	}
}

type middleware struct {
	registry *sqllock.Registry
	key      func(*asynq.Task) string
	opts     Options
}

func (m *middleware) process(ctx context.Context, task *asynq.Task, next asynq.Handler) (err error) {
	if m.registry == nil || m.key == nil {
		return fmt.Errorf("%w: the middleware needs a registry and a key", sqllock.ErrInvalid)
	}
	key := m.key(task)
	if key == "" {
		return next.ProcessTask(ctx, task)
	}
	lease, err := m.lock(ctx, key)
	if errors.Is(err, sqllock.ErrInvalid) {
		return err
	}
	if err != nil {
		return &notProcessedError{err}
	}
	defer func() {
		if unlocked := lease.Unlock(ctx); errors.Is(unlocked, sqllock.ErrLockLost) {
			err = errors.Join(err, unlocked)
		}
	}()
	return next.ProcessTask(lease.Context(), task) //nolint:contextcheck // it is made from ctx
}

func (m *middleware) lock(ctx context.Context, key string) (*sqllock.Lease, error) {
	lock, err := m.registry.Obtain(key)
	if err != nil {
		return nil, err
	}
	lock = lock.WithAutoRenew(true)
	if isLastTry(ctx) {
		return lock.Lock(ctx)
	}
	return lock.TryLockFor(ctx, m.opts.Wait)
}

// isLastTry reports whether asynq archives the task after an error.
func isLastTry(ctx context.Context) bool {
	retried, ok := asynq.GetRetryCount(ctx)
	if !ok {
		return false // not in a server of asynq
	}
	most, ok := asynq.GetMaxRetry(ctx)
	return ok && retried >= most
}
