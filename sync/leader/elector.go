package leader

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/sqllock/sqllock"
)

// An Elector is a candidate for a role. All methods are safe for concurrent use.
type Elector struct {
	registry  *sqllock.Registry
	role      string
	opts      Options
	view      *view
	candidate candidate
	running   atomic.Bool
	tell      observers
}

// New returns an elector for the role, which is a key of the registry. opts may be nil. New sends nothing to the
// database. Its lease is renewed whatever [sqllock.RegistryOptions] says; its time-to-live is the registry's.
// Electors do not lead in the order of arrival, also in a registry with Fair: a candidate may stand by for
// days, and would keep a session for that.
//
// The error is a [sqllock.ErrInvalid], or that of [sqllock.Registry.Obtain].
func New(registry *sqllock.Registry, role string, opts *Options) (*Elector, error) {
	if registry == nil {
		return nil, invalid("an elector needs a registry")
	}
	lock, err := registry.Obtain(role)
	if err != nil {
		return nil, err
	}
	o, err := opts.complete(lock.TTL())
	if err != nil {
		return nil, err
	}
	e := &Elector{registry: registry, role: role, opts: o, view: newView(registry.Repository(), role), tell: observersOf(registry, role)}
	e.candidate = candidate{view: e.view, registry: registry, lock: lock.WithAutoRenew(true).WithFair(false), opts: &e.opts}
	return e, nil
}

// Role returns the role.
func (e *Elector) Role() string { return e.role }

// Run campaigns until ctx ends, and calls lead once a term, with a context that ends with the term and the lease of
// the role. The package documentation says how terms end.
//
// Run returns
//
//   - the cause of ctx when ctx has ended, joined with what else has failed by then: an error
//     of lead that is not its context's, a release that failed, or [sqllock.ErrLockLost] if
//     the lease was lost before lead returned,
//   - the error of lead, if lead returned it while its context lasted, unless the release finds
//     that the lease was lost already,
//   - [sqllock.ErrClosed] when the registry was closed, within its IdleBetweenTries while the
//     elector sits out,
//   - [sqllock.ErrInvalid] at once, if lead is nil, if this elector runs already, or if ctx
//     carries a lease of the role: with it, lead would run under that lease, beside its owner.
//
// No hook is called after Run has returned.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context, lease *sqllock.Lease) error) error {
	if err := e.check(ctx, lead == nil); err != nil {
		return err
	}
	if !e.running.CompareAndSwap(false, true) {
		return invalid("the elector of %q runs already", e.role)
	}
	defer e.running.Store(false)
	defer e.view.forget()
	defer e.view.observe(ctx, e.opts.ObserveEvery, e.opts.OnChange)()

	defer e.tell.retired(ctx) // also if an observer panics
	e.tell.candidate(ctx)

	quick := backoff{most: e.candidate.lock.TTL()}
	for {
		t, err := e.candidate.campaign(ctx)
		if err != nil {
			return err
		}
		err = e.lead(ctx, t, lead)
		again, err := e.after(ctx, t, err)
		if !again {
			return err
		}
		if !e.candidate.letOthersLead(ctx, t, &quick) {
			return context.Cause(ctx)
		}
	}
}

// lead runs a term.
func (e *Elector) lead(ctx context.Context, t *term, lead func(context.Context, *sqllock.Lease) error) error {
	e.view.begin(t) //nolint:contextcheck // the context of the term is made from ctx
	defer func() {
		e.view.end(t)
		close(t.released)
		t.awaitHooks()
	}()
	return t.run(ctx, lead, &e.opts, &e.tell)
}

// check returns why lead cannot be run with ctx.
func (e *Elector) check(ctx context.Context, noLead bool) error {
	if noLead {
		return invalid("there is no function to lead %q with", e.role)
	}
	switch _, err := e.registry.LeaseFrom(ctx, e.role); {
	case err == nil, errors.Is(err, sqllock.ErrLockLost):
		return invalid("the context carries a lease of %q", e.role)
	case errors.Is(err, sqllock.ErrNotHeld):
		return nil
	default:
		return err
	}
}

// after decides what follows a term whose lead has returned err: another one, or the result of Run.
func (e *Elector) after(ctx context.Context, t *term, err error) (again bool, result error) {
	if t.cause != nil && isEndOf(t.cause, err) {
		err = nil // lead returned because its context ended
	}
	switch {
	case ctx.Err() != nil:
		return false, joined(context.Cause(ctx), err, t.result)
	case errors.Is(t.result, sqllock.ErrClosed):
		return false, joined(t.result, err)
	case err != nil && t.cause == nil && !errors.Is(t.result, sqllock.ErrLockLost):
		return false, joined(err, t.result)
	}
	e.opts.reportError(err)
	e.opts.reportError(t.result)
	return true, nil
}

// isEndOf reports whether err says that a context has ended which has ended with a cause.
func isEndOf(cause, err error) bool {
	return errors.Is(err, cause) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
