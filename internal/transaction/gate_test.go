package transaction

import (
	"context"
	"database/sql"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
)

// All but the last connection are for statements in the order of arrival. Those of renewals do
// not wait, and have the next connections.
func TestGate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most, kept, urgent int
		want               int // how many others pass
	}{
		"no limit":                    {0, 0, 0, 9},
		"one connection":              {1, 0, 0, 1},
		"one connection, one renewal": {1, 0, 1, 1},
		"two":                         {2, 0, 0, 1},
		"five":                        {5, 0, 0, 4},
		"five, one renewal":           {5, 0, 1, 4},
		"five, three renewals":        {5, 0, 3, 2},
		"five, two turns":             {5, 2, 0, 2},
		"all turns":                   {2, 2, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := new(Gate)
				if c.kept > 0 && (!g.Keep(c.kept, c.kept) || g.Keep(1, c.kept)) {
					t.Error("the limit of what is kept does not count")
				}
				var renewals []pass
				for range c.urgent {
					renewals = append(renewals, check.Value(g.enter(Urgent(t.Context()), c.most))(t))
				}
				passed := make(chan pass, 9)
				for range 9 {
					go func() { passed <- check.Value(g.enter(t.Context(), c.most))(t) }()
				}
				synctest.Wait()
				check.Equal(t, "passed", len(passed), c.want)
				for range 9 {
					(<-passed).leave()
				}
				for _, renewal := range renewals {
					renewal.leave()
				}
				if g.others != 0 || g.urgent != 0 || len(g.waiting) != 0 {
					t.Errorf("%+v", g)
				}
			})
		})
	}
}

// A statement whose context ends while it waits does not pass, and has no place any more.
func TestGate_EndOfTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := new(Gate)
		first := check.Value(g.enter(t.Context(), 2))(t)
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := g.enter(limited, 2)
		check.Is(t, err, context.DeadlineExceeded)
		first.leave()
		check.Value(g.enter(limited, 2))(t).leave() // there is room, so it does not wait
		if g.others != 0 || len(g.waiting) != 0 {
			t.Errorf("%+v", g)
		}
	})
}

// A statement that waits because of a kept connection passes when that is given back, although no other leaves.
func TestGate_EndOfAKeptConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := new(Gate)
		first := check.Value(g.enter(t.Context(), 3))(t)
		if !g.Keep(1, 1) {
			t.Fatal("not kept")
		}
		passed := make(chan pass, 1)
		go func() { passed <- check.Value(g.enter(t.Context(), 3))(t) }()
		synctest.Wait()
		check.Equal(t, "passed before", len(passed), 0)
		g.Keep(-1, 0)
		synctest.Wait()
		check.Equal(t, "passed after", len(passed), 1)
		(<-passed).leave()
		first.leave()
	})
}

// Tables over one pool have one gate, which goes with the pool.
func TestGateOf(t *testing.T) {
	t.Parallel()
	db := new(sql.DB)
	gate := GateOf(db)
	if gate != GateOf(db) || gate == GateOf(new(sql.DB)) {
		t.Error("not one gate for each pool")
	}
	runtime.KeepAlive(db)
	for left := 1; left > 0; {
		runtime.GC()
		gates.mu.Lock()
		left = len(gates.of)
		gates.mu.Unlock()
	}
}
