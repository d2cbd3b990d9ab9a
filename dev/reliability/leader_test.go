//go:build linux

package reliability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/wire"
	"github.com/sqllock/sqllock/sync/leader"
)

const (
	leaderTTL = 2 * time.Second
	// rolesAtOnce is how many roles have the same fate at once, each at another moment of its
	// renewals.
	rolesAtOnce = 10
)

// TestLeader measures for how long a role has no leader after each way in which it can lose the
// one that it has, and that it never has two. It waits for times-to-live to end.
func TestLeader(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "leader", "database, driver", "the leader", "trials", "without a leader: shortest", "median", "longest", "two leaders")
	figures.file = "leader.md"
	each(t, []cell{servers[0], servers[2]}, func(t *testing.T, place int, c cell) {
		b, s := c.newServer(t)
		b.dsn = b.withServerTimeout(t, b.dsn) // a process may be stopped in a transaction
		rounds, roles := size(1, 10), size(3, rolesAtOnce)
		for i, fate := range []struct {
			name string
			run  func(*testing.T, *leaders)
		}{
			{"is killed (-9)", func(t *testing.T, l *leaders) { l.killed(t, rounds, roles) }},
			{"is stopped (SIGSTOP)", func(t *testing.T, l *leaders) { l.stopped(t, rounds, roles) }},
			{"is cut off", func(t *testing.T, l *leaders) { l.cutOff(t, rounds, roles) }},
			{"loses its server, killed and restarted", func(t *testing.T, l *leaders) { l.restarted(t, s, rounds, roles) }},
		} {
			l := &leaders{base: b, roles: make(map[string]*roleHistory)}
			fate.run(t, l)
			least, median, greatest := spread(l.gaps)
			figures.add(10*place+i, c.name, fate.name, len(l.gaps), least, median, greatest, l.two)
			if l.two > 0 {
				t.Errorf("%s: %d times two leaders", fate.name, l.two)
			}
		}
	})
}

// leaders are the terms of some roles.
type leaders struct {
	*base

	mu    sync.Mutex
	roles map[string]*roleHistory
	gaps  []time.Duration // between two leaders
	two   int
}

// A roleHistory is who leads a role.
type roleHistory struct {
	began chan struct{}   // receives a value for each leader of this process
	last  context.Context // of the last term in this process, or nil
	first time.Time       // when that term began, if it was the first
	ended time.Time       // when the last leader has ended; zero if it has not
}

func (l *leaders) role(name string) *roleHistory {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.roles[name] == nil {
		l.roles[name] = &roleHistory{began: make(chan struct{}, 1000)}
	}
	return l.roles[name]
}

// lead returns the function with which a process leads a role until its context ends.
func (l *leaders) lead(role string) func(context.Context, *sqllock.Lease) error {
	r := l.role(role)
	return func(ctx context.Context, _ *sqllock.Lease) error {
		l.begin(ctx, r)
		r.began <- struct{}{}
		<-ctx.Done()
		now := time.Now()
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.last == ctx {
			r.ended = now
		}
		return ctx.Err()
	}
}

// begin notes the begin of a term. The context of the term before must be done, whether or not
// its function has noticed that.
func (l *leaders) begin(ctx context.Context, r *roleHistory) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.last != nil && r.last.Err() == nil {
		l.two++
	}
	if !r.ended.IsZero() {
		l.gaps = append(l.gaps, now.Sub(r.ended))
	}
	if r.first.IsZero() {
		r.first = now
	}
	r.last, r.ended = ctx, time.Time{}
}

// over notes that the leaders of some roles, which were in a child, have ended now. A rival may
// lead already, on a machine that was too slow for a renewal.
func (l *leaders) over(roles []string) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, role := range roles {
		if r := l.roles[role]; r.last == nil {
			r.ended = now
		}
	}
}

// candidate runs an elector of a process of its own until the test ends.
func (l *leaders) candidate(t *testing.T, registry *sqllock.Registry, role string) {
	t.Helper()
	e := check.Value(leader.New(registry, role, &leader.Options{ObserveEvery: 50 * time.Millisecond}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Run(ctx, l.lead(role)) // ctx ends it
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

func (l *leaders) registryOn(t *testing.T, dsn string) *sqllock.Registry {
	t.Helper()
	return l.registry(t, open(t, l.driver, dsn, 4), sqllock.RegistryOptions{TTL: leaderTTL})
}

// inRounds runs rounds of a test, each with some roles of its own.
func inRounds(t *testing.T, name string, rounds, roles int, run func(t *testing.T, roles []string)) {
	t.Helper()
	for round := range rounds {
		t.Run(fmt.Sprint(name, " ", round), func(t *testing.T) {
			names := make([]string, roles)
			for i := range names {
				names[i] = fmt.Sprint(name, " ", round, " ", i)
			}
			run(t, names)
		})
	}
}

// children starts a child that leads the roles, and rivals of it.
func (l *leaders) children(t *testing.T, roles []string, ttl time.Duration) *child.Process {
	t.Helper()
	c := startChild(t, task{Role: "leader", Kind: l.name, DSN: l.dsn, TTL: ttl, Keys: roles})
	for range roles {
		c.Await("leads")
	}
	rivals := l.registryOn(t, l.dsn)
	for _, role := range roles {
		l.candidate(t, rivals, role)
	}
	pause(t.Context(), ttl/2+rand.N(ttl/2))
	return c
}

// rivalsLead waits until the rivals lead.
func (l *leaders) rivalsLead(t *testing.T, roles []string) {
	t.Helper()
	for _, role := range roles {
		await(t, l.role(role).began)
	}
}

// killed kills the process of the leaders.
func (l *leaders) killed(t *testing.T, rounds, roles int) {
	inRounds(t, "killed", rounds, roles, func(t *testing.T, roles []string) {
		c := l.children(t, roles, leaderTTL)
		c.Kill()
		l.over(roles)
		l.rivalsLead(t, roles)
	})
}

// stopped stops the process of the leaders, and continues it when others lead: it finds its
// contexts done. The time without a leader begins when it is stopped.
func (l *leaders) stopped(t *testing.T, rounds, roles int) {
	inRounds(t, "stopped", rounds, roles, func(t *testing.T, roles []string) {
		withTTL(t, leaderTTL, func(ttl time.Duration) bool {
			for i := range roles {
				roles[i] = fmt.Sprint(roles[i], " ", ttl)
			}
			return l.stoppedOnce(t, roles, ttl)
		})
	})
}

// stoppedOnce is false if the leaders have ended before they were stopped.
func (l *leaders) stoppedOnce(t *testing.T, roles []string, ttl time.Duration) bool {
	t.Helper()
	c := l.children(t, roles, ttl)
	if !c.Suspend() {
		return false
	}
	l.over(roles)
	l.rivalsLead(t, roles)
	c.Resume()
	for range roles {
		var alive int64
		var role int
		_, ended := c.Await("ended")
		must(t, check.ErrorOf(fmt.Sscan(ended, &alive, &role)))
		if time.Unix(0, alive).After(l.role(roles[role]).first) {
			l.two++
		}
	}
	return true
}

// cutOff has the network of the leaders drop everything.
func (l *leaders) cutOff(t *testing.T, rounds, roles int) {
	inRounds(t, "cut off", rounds, roles, func(t *testing.T, roles []string) {
		n, dsn := wire.Through(t, l.dsn)
		rivals := l.registryOn(t, l.dsn)
		for _, role := range roles {
			l.candidate(t, l.registryOn(t, dsn), role)
			await(t, l.role(role).began)
			l.candidate(t, rivals, role)
			pause(t.Context(), leaderTTL/3/time.Duration(len(roles)))
		}
		pause(t.Context(), rand.N(leaderTTL))
		n.Silence()
		l.rivalsLead(t, roles)
		n.LeadTo("")
	})
}

// restarted kills the server, and starts it again when all leases have ended.
func (l *leaders) restarted(t *testing.T, s *server.Server, rounds, roles int) {
	inRounds(t, "restarted", rounds, roles, func(t *testing.T, roles []string) {
		a, b := l.registryOn(t, l.dsn), l.registryOn(t, l.dsn)
		for _, role := range roles {
			l.candidate(t, a, role)
			await(t, l.role(role).began)
			l.candidate(t, b, role)
		}
		pause(t.Context(), rand.N(leaderTTL))
		must(t, s.Kill())
		pause(t.Context(), leaderTTL)
		for _, role := range roles {
			for l.leads(role) {
				pause(t.Context(), time.Millisecond)
			}
		}
		must(t, s.Restart(t.Context()))
		back := time.Now()
		l.mu.Lock()
		for _, role := range roles {
			l.roles[role].ended = back // without a server there can be no leader
		}
		l.mu.Unlock()
		l.rivalsLead(t, roles)
	})
}

// leads reports whether a role has a leader.
func (l *leaders) leads(role string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.roles[role].ended.IsZero()
}

// await waits until a leader has begun. It fails the test if none does in a minute.
func await(t *testing.T, began <-chan struct{}) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case <-began:
	case <-limit.C:
		t.Fatal("no leader after a minute")
	}
}

// leaderOfRoles leads the roles of a task for one term, each with a registry of its own, so that their
// leases are renewed at different moments. It prints "leads" for each, and "ended" with the
// time before the last check that found the context not done, and the number of the role.
func leaderOfRoles(ctx context.Context, do task, _ <-chan string) error {
	_, first, err := do.open(ctx, 0, sqllock.RegistryOptions{})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for i, role := range do.Keys {
		pause(ctx, rand.N(do.TTL/3/time.Duration(len(do.Keys))))
		registry, err := sqllock.NewRegistry(first.Repository(), &sqllock.RegistryOptions{TTL: do.TTL})
		if err != nil {
			return err
		}
		elector, err := leader.New(registry, role, nil)
		if err != nil {
			return err
		}
		all.Go(func() {
			running, once := context.WithCancel(ctx)
			defer once()
			_ = elector.Run(running, func(ctx context.Context, _ *sqllock.Lease) error {
				defer once() // it leads for one term
				fmt.Println("leads", role)
				var alive time.Time
				for asked := time.Now(); ctx.Err() == nil; asked = time.Now() {
					alive = asked
					time.Sleep(5 * time.Millisecond)
				}
				fmt.Println("ended", alive.UnixNano(), i)
				return ctx.Err()
			})
		})
	}
	all.Wait()
	return nil
}
