// Package gocronlock is a distributed locker for gocron (github.com/go-co-op/gocron/v2): a job that
// the schedulers of several instances start is run by one of them.
//
//	locker := gocronlock.New[gocron.Lock](registry, &gocronlock.Options{MinHold: 30 * time.Second})
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	if err != nil {
//		return err
//	}
//	_, err = scheduler.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(report), gocron.WithName("report"))
//
// Give each job a name of its own. gocron names a job after its function: two jobs that run one
// function with different parameters would share a lock, and one of them would be skipped.
//
// The package does not import gocron. The type argument is the result that gocron's interface asks
// for.
//
// To run all jobs on one instance, use package leader: its Elector is a gocron.Elector. To have a
// job stop when its lock is lost, use package job: gocron gives a task another context than that
// of its lock.
package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/jobs"
	"github.com/sqllock/sqllock/observe"
)

// Options are the settings of a [Locker]. A zero field means its default.
type Options struct {
	// Prefix stands before the name of a job in its key. Default "".
	Prefix string

	// MinHold is how long the lock of a job stays taken at least, from when it was acquired.
	// Without it a fast job runs once on each instance, because their schedulers start it at
	// slightly different times. Choose it longer than these differ, and shorter than the
	// interval of every job: half of it fits. Default 0: none. A negative MinHold gives a
	// [sqllock.ErrInvalid] for each run.
	MinHold time.Duration

	// OnUnlock, if set, is called after each run with the name of the job and the result of
	// [sqllock.Lease.Unlock], which gocron drops: nil, or [sqllock.ErrLockLost] if another
	// instance may have run the job meanwhile. It may be called by several goroutines at once.
	OnUnlock func(name string, err error)
}

// A Locker is gocron's Locker over the locks of a registry, if L is gocron.Lock. It is safe for
// concurrent use.
//
// Leases are renewed automatically, also with the registry's NoRenew; a MaxHold of the registry
// ends them all the same. If an instance crashes during a job, the lock is free after the registry's
// time-to-live, even if MinHold is longer.
type Locker[L interface {
	Unlock(ctx context.Context) error
}] struct {
	registry *sqllock.Registry
	opts     Options
}

// New returns a locker. opts may be nil. New sends nothing to the database.
func New[L interface {
	Unlock(ctx context.Context) error
}](registry *sqllock.Registry, opts *Options) *Locker[L] {
	l := &Locker[L]{registry: registry}
	if opts != nil {
		l.opts = *opts
	}
	return l
}

// literal matches what gocron calls a job without a name if its task is a function literal. One that
// comes from an inlined function has a name such as "main.main.func1.newTask.2", and from Go 1.27 on
// "main.newTask.2": an own name such as "invoice.tenant.2" is none, as it begins with no package.
var literal = regexp.MustCompile(`\.func\d+(\.|$)|^(main|.*/[^/.]+)\.[^/]+\.\d+$`)

// Lock acquires the lock of a job, or returns an error at once: gocron then skips this run and
// passes the error to the listener of gocron.AfterLockError. The errors are
//
//   - [sqllock.ErrNotAcquired] if another instance runs the job, or has run it within MinHold,
//   - [sqllock.ErrDatabase] and [sqllock.ErrClosed],
//   - [sqllock.ErrInvalid] for a name that gocron has made of a function literal, such as
//     "main.main.func1". It changes when the code around it does, and then two builds would lock
//     two keys: use gocron.WithName. A task that [job.New] has made locks by itself: use
//     gocron.WithDisabledDistributedJobLocker for it. With a name that is its key it would find its
//     own lock taken, and not run either. Also if L has methods beside Unlock, or if the registry is nil.
//
// Observers of the registry are told of an ErrInvalid: [observe.SlogObserver] writes an error. They are told of
// each run, too, and of those that are skipped; gocron does not say whether a run has failed.
func (l *Locker[L]) Lock(ctx context.Context, name string) (L, error) {
	var none L
	if _, ok := any((*held)(nil)).(L); !ok {
		return none, l.refuse(ctx, name, fmt.Errorf("%w: the type argument of gocronlock.New has more methods than Unlock: use gocron.Lock", sqllock.ErrInvalid))
	}
	if l.registry == nil {
		return none, fmt.Errorf("%w: a locker needs a registry", sqllock.ErrInvalid)
	}
	if literal.MatchString(name) {
		return none, l.refuse(ctx, name, fmt.Errorf("%w: the name of job %q differs between builds: use gocron.WithName, or,"+
			" for a task of package job, which locks by itself, gocron.WithDisabledDistributedJobLocker", sqllock.ErrInvalid, name))
	}
	lock, err := l.registry.Obtain(l.opts.Prefix + name)
	if err != nil {
		return none, l.refuse(ctx, name, err)
	}
	lease, err := lock.WithAutoRenew(true).WithMinHold(l.opts.MinHold).TryLock(ctx)
	if err != nil {
		return none, l.refuse(ctx, name, err)
	}
	result, _ := any(&held{lease, l.registry, time.Now(), name, l.opts}).(L)
	return result, nil
}

// refuse returns err, of which gocron tells no more than a listener: see [observe.Observer].
func (l *Locker[L]) refuse(ctx context.Context, name string, err error) error {
	jobs.Report(ctx, l.registry, observe.JobRun{Job: l.opts.Prefix + name, Err: err}, 0)
	return err
}

// held is a lock that gocron holds.
type held struct {
	lease    *sqllock.Lease
	registry *sqllock.Registry
	began    time.Time
	name     string
	opts     Options
}

// Unlock releases the lock, also when ctx has ended.
func (h *held) Unlock(ctx context.Context) error {
	e := observe.JobRun{Job: h.lease.Key(), Outcome: observe.JobEnded, Began: h.began, Took: time.Since(h.began)}
	e.Err = h.lease.Unlock(ctx)
	if errors.Is(e.Err, sqllock.ErrLockLost) {
		e.Outcome = observe.JobFailed
	}
	jobs.Report(ctx, h.registry, e, h.opts.MinHold)
	if h.opts.OnUnlock != nil {
		h.opts.OnUnlock(h.name, e.Err)
	}
	return e.Err
}
