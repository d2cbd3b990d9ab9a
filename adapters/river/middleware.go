// Package riverlock is middleware for github.com/riverqueue/river: jobs of one key are worked one at
// a time, over all clients, queues and kinds, and also with work outside of river that uses the
// same lock.
//
//	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
//		Middleware: []rivertype.Middleware{
//			riverlock.Middleware(registry, func(job *rivertype.JobRow) string { return job.Kind }, nil),
//		},
//		...
//	})
//
// river's unique jobs are another thing: they keep a job from being inserted twice.
package riverlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/sqllock/sqllock"
)

// Options are the settings of the middleware. A zero field means its default.
type Options struct {
	// Wait is how long a job waits for its lock before it is snoozed. It occupies one of the
	// client's workers. By default it does not wait.
	Wait time.Duration

	// Snooze is how long a job is snoozed that has not got its lock. By default, for as long as the
	// row of the holder still lasts, at least a second. The lock may be free earlier, or be
	// renewed.
	Snooze time.Duration
}

// Middleware returns middleware that works a job under the lock of its key. A job for which key
// returns "" is worked without a lock. opts may be nil.
//
// The context of the job is then made from that of the lease: it ends with cause
// [sqllock.ErrLockLost] before another job of the key can be worked, and carries the lease for
// [sqllock.Registry.LeaseFrom]. The lease is renewed automatically, whatever the registry's options
// say. Its time-to-live is how long the lock stays taken after a client has crashed.
//
// If the lock is held, the job is not worked, but snoozed, which costs none of its attempts. The
// same is true if the database of the lock fails, or the registry is closed. The middleware then
// returns an error in which errors.Is finds a [sqllock.ErrNotAcquired], [sqllock.ErrDatabase] or
// [sqllock.ErrClosed], and a [river.JobSnoozeError]. river does not pass that to its ErrorHandler;
// middleware that stands before this one sees it.
//
// A bad key gives a [sqllock.ErrInvalid], and so do a negative option and a nil registry or key. This
// is an error of the job, which costs an attempt. So is the error of the job itself, joined with an
// [sqllock.ErrLockLost] if the lease was lost, also if the job returned nil. If only the release of
// the lock fails, the job is done, and the lock stays taken until its time-to-live ends.
func Middleware(registry *sqllock.Registry, key func(*rivertype.JobRow) string, opts *Options) rivertype.WorkerMiddleware {
	m := middleware{registry: registry, key: key}
	if opts != nil {
		m.opts = *opts
	}
	return river.WorkerMiddlewareFunc(m.work)
}

type middleware struct {
	registry *sqllock.Registry
	key      func(*rivertype.JobRow) string
	opts     Options
}

func (m *middleware) work(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) (err error) {
	if m.registry == nil || m.key == nil {
		return fmt.Errorf("%w: the middleware needs a registry and a key", sqllock.ErrInvalid)
	}
	key := m.key(job)
	if key == "" {
		return doInner(ctx)
	}
	if m.opts.Snooze < 0 {
		return fmt.Errorf("%w: Snooze is %v", sqllock.ErrInvalid, m.opts.Snooze)
	}
	lease, err := m.lock(ctx, key)
	if errors.Is(err, sqllock.ErrInvalid) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", err, river.JobSnooze(m.snooze(err)))
	}
	defer func() {
		if unlocked := lease.Unlock(ctx); errors.Is(unlocked, sqllock.ErrLockLost) {
			err = errors.Join(err, unlocked)
		}
	}()
	return doInner(lease.Context()) //nolint:contextcheck // it is made from ctx
}

func (m *middleware) lock(ctx context.Context, key string) (*sqllock.Lease, error) {
	lock, err := m.registry.Obtain(key)
	if err != nil {
		return nil, err
	}
	return lock.WithAutoRenew(true).TryLockFor(ctx, m.opts.Wait)
}

// minSnooze is the shortest default of Options.Snooze. The row of a holder that renews its lease
// often has less than a moment left.
const minSnooze = time.Second

// snooze returns how long a job is snoozed that has not got its lock.
func (m *middleware) snooze(err error) time.Duration {
	if m.opts.Snooze > 0 {
		return m.opts.Snooze
	}
	var held *sqllock.HeldError
	if errors.As(err, &held) {
		return max(held.Left, minSnooze)
	}
	return minSnooze
}
