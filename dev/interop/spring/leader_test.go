//go:build interop

package spring_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sync/leader"
)

// A goCandidate is an elector in this process.
type goCandidate struct {
	*leader.Elector
	stop  func()
	began chan *sqllock.Lease
	last  atomic.Pointer[sqllock.Lease] // of the last term that has begun
}

// sitOut is long enough for Java to lead next, and short enough for a wait of the test: an elector
// may miss a term of Java's that ends at once.
const sitOut = waitLimit / 3

// campaign runs an elector for the role until the test ends, or until stop is called.
func (c *cell) campaign(t *testing.T, registry *sqllock.Registry) *goCandidate {
	t.Helper()
	elector := check.Value(leader.New(registry, key, &leader.Options{SitOut: sitOut, ObserveEvery: idle}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	g := &goCandidate{Elector: elector, began: make(chan *sqllock.Lease, 100), stop: func() { cancel(); <-ended }}
	go func() {
		defer close(ended)
		_ = elector.Run(ctx, func(ctx context.Context, lease *sqllock.Lease) error {
			g.last.Store(lease)
			g.began <- lease
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(g.stop)
	return g
}

// awaitTerm waits until the elector leads.
func (g *goCandidate) awaitTerm(t *testing.T) *sqllock.Lease {
	t.Helper()
	select {
	case lease := <-g.began:
		return lease
	case <-time.After(waitLimit):
		t.Fatal("the elector does not lead")
		return nil
	}
}

// term returns the lease of the elector if it leads, or nil.
func (g *goCandidate) term(ctx context.Context) *sqllock.Lease {
	if lease := g.last.Load(); lease != nil && lease.Context().Err() == nil && g.leads(ctx) {
		return lease
	}
	return nil
}

// leads reports whether the elector leads.
func (g *goCandidate) leads(ctx context.Context) bool { return g.IsLeader(ctx) == nil }

// awaitJava waits until Java leads.
func awaitJava(t *testing.T, java *javaclient.Client) {
	t.Helper()
	for ctx := patiently(t); ; time.Sleep(idle) {
		leads := check.Value(java.Leads(ctx))(t)
		if leads {
			return
		}
	}
}

// awaitNoJava waits until Java does not lead.
func awaitNoJava(t *testing.T, java *javaclient.Client) {
	t.Helper()
	for ctx := patiently(t); check.Value(java.Leads(ctx))(t); {
		time.Sleep(idle)
	}
}

// roleTTL is the time-to-live of leaders that nothing happens to. Spring's stop() interrupts the
// thread that unlocks, which may leave the row for as long.
var roleTTL = scaled(15 * time.Second)

// TestLeaders has an elector and Spring's LockRegistryLeaderInitiator lead one role in turn.
// Meanwhile it asks both all the time who leads: never both.
func TestLeaders(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: roleTTL})
		must(t, java.Campaign(ctx, key))
		awaitJava(t, java)
		ours := c.campaign(t, c.registry(t, roleTTL))
		twoLeaders := watchBoth(t, java, ours)
		if now, err := ours.Leader(ctx); err != nil || now.Me || now.Client == "" || now.Holder != now.Client {
			t.Errorf("Java leads, we see %+v, %v", now, err)
		}
		for range 3 {
			for lease := (*sqllock.Lease)(nil); lease == nil; { // Java may win again
				must(t, java.Yield(ctx))
				select {
				case lease = <-ours.began:
				// real time: a round in which Java was the next leader is over, and Java yields again
				case <-time.After(time.Second):
				}
			}
			must(t, ours.Resign(ctx)) // Java leads before we campaign again
			awaitJava(t, java)
		}
		must(t, java.Withdraw(ctx))
		ours.awaitTerm(t)
		must(t, java.Campaign(ctx, key))
		// real time: Java tries meanwhile: if it is late, the test notices less
		time.Sleep(time.Second) // Java tries meanwhile
		if !ours.leads(ctx) {
			t.Error("Java has ended our term")
		}
		ours.stop()
		awaitJava(t, java)
		if n := twoLeaders(); n > 0 {
			t.Errorf("%d times two leaders", n)
		}
	})
}

// watchBoth asks Java who leads again and again, and ours before and after that: both led if ours
// did so in one term. The function that it returns ends that, and returns how often both led.
func watchBoth(t *testing.T, java *javaclient.Client, ours *goCandidate) (end func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	both := make(chan int, 1)
	go func() {
		asked, n := 0, 0
		for ctx.Err() == nil {
			before := ours.term(ctx)
			theirs, err := java.Leads(ctx)
			if err != nil {
				break
			}
			if asked++; theirs && before != nil && ours.term(ctx) == before {
				n++
			}
		}
		t.Logf("asked %d times", asked)
		both <- n
	}()
	t.Cleanup(cancel)
	return func() int {
		cancel()
		return <-both
	}
}

// TestLeadersAfterACrash kills the process of Java's leader: our elector leads when the
// time-to-live has passed, and not before. Then another Java leads after ours has ended.
func TestLeadersAfterACrash(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		jvm := start(t, c.generation, nil)
		java := c.javaIn(t, jvm, javaclient.Settings{TTL: short})
		before := time.Now()
		must(t, java.Campaign(ctx, key))
		awaitJava(t, java)
		ours := c.campaign(t, c.registry(t, short))
		jvm.Kill()
		ours.awaitTerm(t)
		wantExpired(t, before)
		other := c.java(t, javaclient.Settings{TTL: short})
		must(t, other.Campaign(ctx, key))
		must(t, ours.Resign(ctx))
		awaitJava(t, other)
	})
}

// TestAJavaLeaderThatHasLostATerm takes the role from Java's leader once, by force. In its next term yield() does
// not give the role up, and stop() leaves the row until it expires: Spring counts a lock that it has not unlocked.
func TestAJavaLeaderThatHasLostATerm(t *testing.T) {
	t.Parallel()
	migrated(t, versions, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: roleTTL})
		must(t, java.Campaign(ctx, key))
		awaitJava(t, java)
		ours := c.lock(t, roleTTL)
		var lease *sqllock.Lease
		for lease == nil { // Java writes its row each half second
			c.exec(t, "DELETE FROM INT_LOCK")
			lease, _ = ours.TryLock(ctx)
		}
		awaitNoJava(t, java)
		must(t, lease.Unlock(ctx))
		awaitJava(t, java)
		must(t, java.Yield(ctx))
		_, err := ours.TryLockFor(ctx, 3*time.Second)
		wantHeld(t, err)
		awaitJava(t, java)
		must(t, java.Withdraw(ctx))
		awaitNoJava(t, java)
		if row := c.row(t, roleTTL); row.Expired() {
			t.Errorf("the row has ended %v ago", -row.Left)
		}
	})
}
