//go:build linux

package checker_test

import (
	"fmt"
	"testing"

	"github.com/sqllock/sqllock/reliability/clusters/checker"
	"github.com/sqllock/sqllock/reliability/clusters/history"
)

func acquire(lease string, token, from, to int64) history.Event {
	return history.Event{Op: history.Acquire, Key: "k", Lease: lease, Token: token, From: from, To: to}
}

func alive(lease string, at int64) history.Event {
	return history.Event{Op: history.Alive, Key: "k", Lease: lease, From: at, To: at}
}

func release(lease string, from, to int64) history.Event {
	return history.Event{Op: history.Release, Key: "k", Lease: lease, From: from, To: to}
}

func renew(lease string, from, to int64) history.Event {
	return history.Event{Op: history.Renew, Key: "k", Lease: lease, From: from, To: to}
}

func write(lease, id string, from, to int64) history.Event {
	return history.Event{Op: history.Write, Key: "k", Lease: lease, ID: id, Guarded: true, From: from, To: to}
}

func failed(e history.Event) history.Event {
	e.Err = "the answer was lost"
	return e
}

func row(id string, token int64, earlier, later int) checker.Row {
	return checker.Row{ID: id, Key: "k", Token: token, Guarded: true, Earlier: earlier, Later: later}
}

// found counts the violations: overlaps, tokens, stale writes, missing writes, keys that are not
// linearizable.
type found [5]int

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []history.Event
		rows   []checker.Row
		want   found
	}{
		"nothing": {},
		"one after the other": {events: []history.Event{
			acquire("a", 1, 0, 10), alive("a", 20), release("a", 21, 30),
			acquire("b", 2, 15, 29), alive("b", 40), release("b", 41, 50),
		}},
		"a lease that ends by itself": {events: []history.Event{
			acquire("a", 1, 0, 10), alive("a", 20), acquire("b", 2, 15, 40), alive("b", 50),
		}},
		"a lease of which nothing is heard again": {events: []history.Event{
			acquire("a", 1, 0, 10), acquire("b", 2, 20, 30), alive("b", 40),
		}},
		"a release without an answer": {events: []history.Event{
			acquire("a", 1, 0, 10), alive("a", 20), failed(release("a", 21, 90)),
			acquire("b", 2, 15, 30), alive("b", 40),
		}},
		"a renewal whose answer was lost": {events: []history.Event{
			acquire("a", 1, 0, 10), alive("a", 20), failed(renew("a", 15, 90)),
			acquire("b", 2, 25, 30), alive("b", 40),
		}},
		"two holders": {events: []history.Event{
			acquire("a", 1, 0, 10), alive("a", 50), acquire("b", 2, 15, 30), alive("b", 40),
		}, want: found{1, 0, 0, 0, 1}},
		"two holders, of which one is known for an instant": {events: []history.Event{
			acquire("a", 1, 0, 10), alive("a", 50), acquire("b", 2, 15, 30), alive("b", 30),
		}, want: found{1, 0, 0, 0, 1}},
		"a lease that had ended when its acquisition returned": {events: []history.Event{
			acquire("a", 1, 0, 30), acquire("b", 2, 15, 20), alive("b", 40),
		}},
		"a token that does not rise": {events: []history.Event{
			acquire("a", 5, 0, 10), alive("a", 11), release("a", 12, 13), acquire("b", 4, 20, 30),
		}, want: found{0, 1, 0, 0, 1}},
		"one token twice": {events: []history.Event{
			acquire("a", 5, 0, 10), alive("a", 11), release("a", 12, 13), acquire("b", 5, 20, 30),
		}, want: found{0, 1, 0, 0, 1}},
		"answers in another order than the holders": {events: []history.Event{
			acquire("a", 5, 0, 40), acquire("b", 4, 0, 30),
		}},
		"a renewal after the next holder": {events: []history.Event{
			acquire("a", 1, 0, 10), alive("a", 11), acquire("b", 2, 20, 30), alive("b", 31), renew("a", 35, 40),
		}, want: found{0, 0, 0, 0, 1}},
		"a lock that is taken while its release is not sent": {events: []history.Event{
			acquire("a", 1, 0, 10), alive("a", 20), release("a", 50, 60), acquire("b", 2, 25, 30),
		}, want: found{0, 0, 0, 0, 1}},
		"guarded writes in the order of holders": {
			events: []history.Event{
				acquire("a", 1, 0, 10), write("a", "w1", 11, 12), write("a", "w2", 13, 29),
				acquire("b", 2, 20, 30), write("b", "w3", 31, 32),
			},
			rows: []checker.Row{row("w1", 1, 0, 0), row("w2", 1, 0, 0), row("w3", 2, 2, 0)},
		},
		"a guarded write that outlives its lease, but not the lock": {
			events: []history.Event{
				acquire("a", 1, 0, 10), alive("a", 11), write("a", "w1", 90, 99), acquire("b", 2, 20, 95), write("b", "w2", 100, 101),
			},
			rows: []checker.Row{row("w1", 1, 0, 0), row("w2", 2, 1, 0)},
		},
		"a guarded write after the next holder's": {
			events: []history.Event{
				acquire("a", 1, 0, 10), acquire("b", 2, 20, 30), write("b", "w2", 31, 32), write("a", "w1", 40, 41),
			},
			rows: []checker.Row{row("w1", 1, 0, 0), row("w2", 2, 0, 0)},
			want: found{0, 0, 1, 0, 1},
		},
		"the same, and it has seen it": {
			events: []history.Event{acquire("a", 1, 0, 10), acquire("b", 2, 20, 30), failed(write("a", "w1", 31, 99))},
			rows:   []checker.Row{row("w1", 1, 0, 1), row("w2", 2, 0, 0)},
			want:   found{0, 0, 2, 0, 0},
		},
		"a guarded write after the next holder has the lock": {
			events: []history.Event{acquire("a", 1, 0, 10), acquire("b", 2, 20, 30), alive("b", 50), write("a", "w1", 40, 41)},
			rows:   []checker.Row{row("w1", 1, 0, 0)},
			want:   found{0, 0, 0, 0, 1},
		},
		"an acknowledged write is lost": {
			events: []history.Event{acquire("a", 1, 0, 10), write("a", "w1", 11, 12)},
			want:   found{0, 0, 0, 1, 0},
		},
		"a write without an answer is lost, another one is not": {
			events: []history.Event{acquire("a", 1, 0, 10), failed(write("a", "w1", 11, 12)), failed(write("a", "w2", 13, 14))},
			rows:   []checker.Row{row("w2", 1, 0, 0)},
		},
		"a row that is not guarded may come late": {
			events: []history.Event{acquire("a", 1, 0, 10), acquire("b", 2, 20, 30), write("b", "w2", 31, 32)},
			rows:   []checker.Row{{ID: "w1", Key: "k", Token: 1}, row("w2", 2, 0, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := checker.Check(c.events, c.rows)
			got := found{len(r.Overlaps), len(r.Tokens), len(r.Stale), len(r.Missing), len(r.Nonlinear)}
			if got != c.want {
				t.Errorf("%v, want %v: %q", got, c.want, r.Violations())
			}
		})
	}
}

// A long history with many ends that nobody has seen is decided.
func TestALongHistory(t *testing.T) {
	t.Parallel()
	const leases = 3000
	history := func(wrong int) (events []history.Event) {
		for i := range int64(leases) {
			id := fmt.Sprint(i)
			events = append(events, acquire(id, i+1, 100*i-90, 100*i+10), alive(id, 100*i+50), write(id, id, 100*i+20, 100*i+30))
			if i%3 == 0 {
				events = append(events, release(id, 100*i+60, 100*i+150))
			}
			if i == int64(wrong) {
				events = append(events, renew(id, 100*i+210, 100*i+220))
			}
		}
		return events
	}
	if r := checker.Check(history(-1), nil); len(r.Nonlinear) > 0 {
		t.Errorf("a good history: %q", r.Nonlinear)
	}
	if r := checker.Check(history(leases/2), nil); len(r.Nonlinear) != 1 {
		t.Error("the fault is not found")
	}
}
