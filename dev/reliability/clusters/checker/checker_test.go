//go:build linux

package checker_test

import (
	"fmt"
	"testing"

	"github.com/sqllock/sqllock/dev/reliability/clusters/checker"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
)

func acquire(lease string, token, from, to int64) history.Event {
	return acquireOf(lease, token, from, to, history.Hold{Key: "k", Units: 1, Of: 1})
}

func acquireOf(lease string, token, from, to int64, holds ...history.Hold) history.Event {
	return history.Event{Op: history.Acquire, Lease: lease, Token: token, From: from, To: to, Holds: holds}
}

// writer, reader and permits are what leases hold of "k".
var (
	writer  = history.Hold{Key: "k", Units: 9, Of: 9}
	reader  = history.Hold{Key: "k", Units: 1, Of: 9}
	permits = func(n int) history.Hold { return history.Hold{Key: "k", Units: n, Of: 3} }
	other   = history.Hold{Key: "other", Units: 1, Of: 1}
)

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
		"readers beside each other, and then a writer": {events: []history.Event{
			acquireOf("a", 5, 0, 10, reader), alive("a", 30), acquireOf("b", 4, 15, 20, reader), alive("b", 40), release("a", 41, 42),
			release("b", 43, 44), acquireOf("c", 3, 15, 60, writer), alive("c", 70),
		}},
		"a reader beside a writer": {events: []history.Event{
			acquireOf("a", 1, 0, 10, writer), alive("a", 50), acquireOf("b", 2, 15, 20, reader), alive("b", 40),
		}, want: found{1, 0, 0, 0, 1}},
		"a writer beside one of two readers": {events: []history.Event{
			acquireOf("a", 1, 0, 10, reader), alive("a", 30), acquireOf("b", 2, 0, 10, reader), alive("b", 50),
			acquireOf("c", 3, 15, 40, writer), alive("c", 60),
		}, want: found{1, 0, 0, 0, 1}},
		"a writer becomes a reader, and another reader comes": {events: []history.Event{
			acquireOf("a", 1, 0, 10, writer), alive("a", 20), release("a", 25, 40), acquireOf("b", 2, 25, 25, reader), alive("b", 50),
			acquireOf("c", 3, 22, 30, reader), alive("c", 50),
		}},
		"a writer comes while another becomes a reader": {events: []history.Event{
			acquireOf("a", 1, 0, 10, writer), alive("a", 20), release("a", 25, 40), acquireOf("b", 2, 25, 25, reader), alive("b", 50),
			acquireOf("c", 3, 22, 30, writer), alive("c", 31),
		}, want: found{1, 0, 0, 0, 1}},
		"a reader's guarded write when its lease has ended": {events: []history.Event{
			acquireOf("a", 1, 0, 10, reader), alive("a", 20), acquireOf("b", 2, 25, 30, reader), write("a", "w1", 40, 41),
		}, rows: []checker.Row{row("w1", 1, 0, 0)}},
		"a reader's guarded write after the next writer has the lock": {events: []history.Event{
			acquireOf("a", 1, 0, 10, reader), alive("a", 20), acquireOf("b", 2, 25, 30, writer), write("a", "w1", 40, 41),
		}, rows: []checker.Row{row("w1", 1, 0, 0)}, want: found{0, 0, 0, 0, 1}},
		"writers' tokens do not rise": {events: []history.Event{
			acquireOf("a", 5, 0, 10, writer), release("a", 12, 13), acquireOf("b", 9, 20, 30, reader), release("b", 31, 32),
			acquireOf("c", 4, 40, 50, writer),
		}, want: found{0, 1, 0, 0, 1}},
		"all permits": {events: []history.Event{
			acquireOf("a", 2, 0, 10, permits(1)), alive("a", 50), acquireOf("b", 1, 0, 10, permits(2)), alive("b", 20),
			release("b", 21, 30), acquireOf("c", 3, 15, 25, permits(2)), alive("c", 50),
		}},
		"a permit too many": {events: []history.Event{
			acquireOf("a", 1, 0, 10, permits(1)), alive("a", 50), acquireOf("b", 2, 0, 10, permits(1)), alive("b", 50),
			acquireOf("c", 3, 15, 25, permits(2)), alive("c", 50),
		}, want: found{1, 0, 0, 0, 1}},
		"a joint lock beside one of its keys": {events: []history.Event{
			acquireOf("a", 1, 0, 10, other, history.Hold{Key: "k", Units: 1, Of: 1}), alive("a", 50), acquire("b", 2, 15, 20), alive("b", 40),
		}, want: found{1, 0, 0, 0, 1}},
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

// A long history with many ends that no worker has seen is decided: of a plain lock, and of many readers that
// wait for a writer.
func TestALongHistory(t *testing.T) {
	t.Parallel()
	const leases = 3000
	lone := func(int64) history.Hold { return history.Hold{Key: "k", Units: 1, Of: 1} }
	shared := func(n int64) history.Hold {
		if n%7 == 0 {
			return writer
		}
		return reader
	}
	for name, holds := range map[string]func(int64) history.Hold{"lock": lone, "read-write lock": shared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := func(wrong int64) (events []history.Event) {
				for i := range int64(leases) {
					id := fmt.Sprint(i)
					asked, got, last := 100*i-90, 100*i+10, 100*i+50
					if holds(i) == reader {
						asked, last = asked-500, 700*(i/7)+650 // until shortly before the next writer
					}
					events = append(events, acquireOf(id, i+1, asked, got, holds(i)), alive(id, last), write(id, id, 100*i+20, 100*i+30))
					if i%3 == 0 {
						events = append(events, release(id, last+10, last+100))
					}
					if i == wrong {
						events = append(events, renew(id, 100*i+810, 100*i+820))
					}
				}
				return events
			}
			if r := checker.Check(events(-1), nil); len(r.Nonlinear)+len(r.Overlaps) > 0 {
				t.Errorf("a good history: %q %q", r.Nonlinear, r.Overlaps)
			}
			if r := checker.Check(events(leases/2), nil); len(r.Nonlinear) != 1 {
				t.Error("the fault is not found")
			}
		})
	}
}
