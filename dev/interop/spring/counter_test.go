//go:build interop

package spring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
)

const (
	goal    = 10_000 // critical sections: enough for each side to get in, however slow it is
	callers = 4      // goroutines in each of two Go processes
	threads = 4      // in each of two JVMs
)

// A tally counts what one or more callers have done.
type tally struct {
	Added, Overlaps int
}

func (t *tally) add(other tally) {
	t.Added += other.Added
	t.Overlaps += other.Overlaps
}

// TestMutualExclusion lets Java and Go increment one counter that only the lock protects. Both
// poll at their default interval, which is the same. This test does not run in parallel with
// others, since the shares of both sides depend on their speed.
func TestMutualExclusion(t *testing.T) {
	migrated(t, contended, func(t *testing.T, c *cell) {
		// The Java program uses this table, too.
		c.exec(t, "CREATE TABLE COUNTER (VALUE INT NOT NULL, INSIDE INT NOT NULL)")
		c.exec(t, "INSERT INTO COUNTER (VALUE, INSIDE) VALUES (0, 0)")
		world := c.contend(t, goal)
		total := world.java.Added + world.golang.Added
		lost, overlaps := total-goal, world.java.Overlaps+world.golang.Overlaps
		t.Logf("%d critical sections: Java %d (%d %%), Go %d (%d %%); updates lost %d, overlaps %d",
			total, world.java.Added, 100*world.java.Added/total, world.golang.Added, 100*world.golang.Added/total, lost, overlaps)
		if lost != 0 || overlaps != 0 {
			t.Errorf("%d updates lost, %d overlaps", lost, overlaps)
		}
		// In sixteen runs Java had 29 to 65 %. How fast the machine starts and runs the sides is in it, so the bound is wide.
		if less, more := min(world.java.Added, world.golang.Added), max(world.java.Added, world.golang.Added); 5*less < more {
			t.Error("one side has had the lock more than five times as often as the other")
		}
	})
}

// tallies are those of Java and of Go.
type tallies struct{ java, golang tally }

// contend lets two JVMs and two Go processes count to the goal concurrently.
func (c *cell) contend(t *testing.T, goal int) (all tallies) {
	t.Helper()
	// All must be ready before the first one counts. Otherwise it could reach the goal
	// before the last one has started.
	var clients []*javaclient.Client
	for range 2 {
		client := c.javaIn(t, start(t, c.generation, nil), javaclient.Settings{TTL: long})
		// Java is slow until its code is compiled.
		must(t, check.ErrorOf(client.Bench(patiently(t), javaclient.Load{Threads: threads, Duration: 2 * time.Second})))
		clients = append(clients, client)
	}
	holder := check.Value(c.lock(t, long).Lock(patiently(t)))(t)
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, client := range clients {
		for i := range threads {
			running.Go(func() {
				got, err := countInJava(t, client.Thread(strconv.Itoa(i)), goal)
				mu.Lock()
				defer mu.Unlock()
				check.Is(t, err, nil)
				all.java.add(got)
			})
		}
	}
	var processes []*child.Process
	for range 2 {
		p := c.process(t, "count", task{TTL: long, Goal: goal, Callers: callers})
		p.Want("ready")
		processes = append(processes, p)
	}
	must(t, holder.Unlock(t.Context()))
	for _, p := range processes {
		var got tally
		must(t, json.Unmarshal([]byte(p.Next()), &got))
		all.golang.add(got)
	}
	running.Wait()
	return all
}

func countInJava(t *testing.T, thread *javaclient.Thread, goal int) (got tally, err error) {
	t.Helper()
	got.Added, got.Overlaps, err = thread.Count(t.Context(), key, goal)
	return got, err
}

// count is the task of a Go process: several goroutines increment the counter until it has
// reached the goal.
func count(ctx context.Context, t task, db *sqlx.DB, registry *sqllock.Registry) (any, error) {
	fmt.Println("ready")
	var all tally
	var errs []error
	var mu sync.Mutex
	var running sync.WaitGroup
	for range t.Callers {
		running.Go(func() {
			got, err := countAlone(ctx, t, db, registry)
			mu.Lock()
			defer mu.Unlock()
			all.add(got)
			errs = append(errs, err)
		})
	}
	running.Wait()
	return all, errors.Join(errs...)
}

func countAlone(ctx context.Context, t task, db *sqlx.DB, registry *sqllock.Registry) (got tally, err error) {
	more := true
	for more && err == nil {
		err = registry.ExecuteLocked(ctx, key, func(ctx context.Context) (err error) {
			more, err = section(ctx, db, t.Goal, &got)
			return err
		})
	}
	return got, err
}

// section increments the counter in two steps, and checks that no other caller is in its
// critical section.
func section(ctx context.Context, db *sqlx.DB, goal int, got *tally) (more bool, err error) {
	if _, err := db.ExecContext(ctx, "UPDATE COUNTER SET INSIDE = INSIDE + 1"); err != nil {
		return false, err
	}
	var value, inside int
	if err := db.QueryRowContext(ctx, "SELECT VALUE, INSIDE FROM COUNTER").Scan(&value, &inside); err != nil {
		return false, err
	}
	if inside != 1 {
		got.Overlaps++
	}
	if more = value < goal; more {
		value++
		got.Added++
	}
	_, err = db.ExecContext(ctx, db.Rebind("UPDATE COUNTER SET INSIDE = INSIDE - 1, VALUE = ?"), value)
	return more, err
}
