package leader_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/leader"
)

// TestResignFromWithinDoesNotWait resigns in the function with contexts that do not end with it.
// A Resign that waited for the function would wait for itself.
func TestResignFromWithinDoesNotWait(t *testing.T) {
	t.Parallel()
	for name, resign := range map[string]func(ctx context.Context, p *process, lease *sqllock.Lease) error{
		"of a context made from it": func(ctx context.Context, p *process, _ *sqllock.Lease) error {
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			return p.Resign(inner)
		},
		"without cancel": func(ctx context.Context, p *process, _ *sqllock.Lease) error {
			return p.Resign(context.WithoutCancel(ctx))
		},
		"twice": func(ctx context.Context, p *process, _ *sqllock.Lease) error {
			p.f.Must(p.Resign(context.WithoutCancel(ctx)))
			return p.Resign(context.WithoutCancel(ctx))
		},
		"of the lease": func(_ context.Context, p *process, lease *sqllock.Lease) error {
			return p.Resign(lease.Context()) //nolint:contextcheck // it carries the term
		},
		"after the lease is lost": func(ctx context.Context, p *process, lease *sqllock.Lease) error {
			p.f.Must(check.ErrorOf(p.registry.Repository().Delete(p.f.Context(), role, lease.Holder()))) //nolint:contextcheck // any will do
			<-ctx.Done()
			return p.Resign(context.WithoutCancel(ctx))
		},
		"after Unlock": func(ctx context.Context, p *process, lease *sqllock.Lease) error {
			p.f.Must(lease.Unlock(ctx))
			return p.Resign(context.WithoutCancel(ctx))
		},
		"of a lease that entered again": func(ctx context.Context, p *process, _ *sqllock.Lease) error {
			inner := check.Value(p.registry.Lock(context.WithoutCancel(ctx), role))(p.f)
			defer func() { p.f.Must(inner.Unlock(ctx)) }()
			return p.Resign(inner.Context()) //nolint:contextcheck // it carries the term
		},
	} {
		runInBubble(t, name, func(f *fixture) {
			a := f.process("a", leader.Options{SitOut: time.Hour})
			resigned := make(chan error, 1)
			var first sync.Once
			a.start(func(ctx context.Context, lease *sqllock.Lease) error {
				first.Do(func() { resigned <- resign(ctx, a, lease) })
				<-ctx.Done()
				return nil
			})
			f.Must(<-resigned)
		})
	}
}

// TestResignWithTheContextOfAnEarlierTerm waits, as any other Resign does: that function has
// returned.
func TestResignWithTheContextOfAnEarlierTerm(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{SitOut: time.Second})
		terms := make(chan context.Context, 10)
		a.start(func(ctx context.Context, _ *sqllock.Lease) error {
			terms <- context.WithoutCancel(ctx)
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil
		})
		earlier := <-terms
		f.Must(a.Resign(f.Context()))
		<-terms
		began := time.Now()
		f.Must(a.Resign(earlier))
		f.Takes("Resign", began, time.Second, time.Second)
	})
}

// TestResignInHooks resigns in hooks, which Run waits for before it returns.
func TestResignInHooks(t *testing.T) {
	inBubble(t, func(f *fixture) {
		var a, b *process
		resigned := make(chan error, 100)
		a = f.process("a", leader.Options{OnChange: func(l leader.Leader) {
			if l.Me {
				resigned <- a.Resign(f.Context())
			}
		}})
		running := a.start(a.leadThen(time.Second))
		f.Must(<-resigned)
		f.Is(running.stop(), errStop)

		b = f.process("b", leader.Options{OnStuck: func(time.Duration) { resigned <- b.Resign(f.Context()) }})
		running = b.start(b.leadThen(leader.DefaultGrace + time.Second))
		f.Must(check.ErrorOf(b.registry.Repository().Delete(f.Context(), role, (<-b.began).Holder())))
		f.Is(<-resigned, sqllock.ErrLockLost)
		f.Is(running.stop(), errStop)
	})
}

// TestResignInAnObserver resigns when a term begins, and when it ends, with a context that is not of the
// term: the term goes on without the observer.
func TestResignInAnObserver(t *testing.T) {
	t.Parallel()
	for _, when := range []observe.ElectorState{observe.ElectorLeader, observe.ElectorCandidate} {
		runInBubble(t, string(when), func(f *fixture) {
			var a *process
			var told []observe.ElectorState
			resigned := make(chan error, 100)
			of := sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: idle, Observers: []*observe.Observer{{
				Election: func(_ context.Context, e observe.Election) {
					told = append(told, e.State) // one at a time
					if e.State == when && e.Holder != "" {
						resigned <- a.Resign(f.Context()) //nolint:contextcheck // that of the term would do
					}
				},
			}}, NoRenew: true}
			a = f.processWith("a", leader.Options{SitOut: time.Hour}, of)
			running := a.start(func(ctx context.Context, _ *sqllock.Lease) error {
				if when == observe.ElectorLeader {
					<-ctx.Done()
				}
				return nil
			})
			f.Must(<-resigned)
			check.Equal(f, "rows", len(check.Value(a.registry.Repository().List(f.Context()))(f)), 0)
			f.Is(running.stop(), errStop)
			check.Same(f, "told", told, []observe.ElectorState{"candidate", "leader", "candidate", "retired"})
		})
	}
}

// TestElectorsThatYield has two electors end short terms themselves. Neither looks who leads but to
// lead.
func TestElectorsThatYield(t *testing.T) {
	t.Parallel()
	const length, whole = 150 * time.Millisecond, 2 * ttl
	for name, yield := range map[string]func(context.Context, *process) error{
		"by returning": func(context.Context, *process) error { return nil },
		"by resigning": func(ctx context.Context, p *process) error { return p.Resign(ctx) },
	} {
		runInBubble(t, name, func(f *fixture) {
			var mu sync.Mutex
			var led, longest time.Duration
			terms, last := 0, time.Now()
			for _, name := range []string{"a", "b"} {
				p := f.process(name, leader.Options{ObserveEvery: time.Hour})
				p.start(func(ctx context.Context, _ *sqllock.Lease) error {
					mu.Lock()
					longest = max(longest, time.Since(last))
					mu.Unlock()
					time.Sleep(length) // not with the mutex: the bubble's clock stands still while a goroutine waits for it
					mu.Lock()
					terms, led, last = terms+1, led+length, time.Now()
					mu.Unlock()
					return yield(ctx, p)
				})
			}
			time.Sleep(whole)
			mu.Lock()
			defer mu.Unlock()
			f.Logf("%d terms, led for %v of %v, vacant for %v at most", terms, led, whole, longest)
			if longest > 2*idle || led < whole*2/5 {
				f.Errorf("vacant for %v, led for %v", longest, led)
			}
		})
	}
}
