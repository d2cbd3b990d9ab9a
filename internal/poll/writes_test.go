package poll

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/stmt"
)

// A pollOf has one waiter poll again and again.
type pollOf struct {
	Poller

	row   stmt.Row // what it reads; mu of polls guards it
	times []time.Time
}

func (p *pollOf) read() stmt.Row {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.row
}

func (p *pollOf) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.row.Left++
}

func (p *pollOf) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.row = stmt.Row{}
}

// run polls until the row is free, or for d. The waiter accepts pauses of 100 ms.
func (p *pollOf) run(d time.Duration) {
	seen := p.read()
	for began, watched := time.Now(), false; time.Since(began) < d; watched = true {
		call := p.join(stmt.Claim{LockKey: "k"}, Pace{Longest: 100 * time.Millisecond, Seen: seen, Watched: watched})
		a := <-call.answer
		now := p.read()
		var found news
		found.of(seen, now)
		p.end(a.round, found)
		p.leave(call)
		p.times = append(p.times, time.Now())
		if seen = now; now.Holder == "" {
			return
		}
	}
}

// after calls fn after d, in virtual time.
func after(d time.Duration, fn func()) {
	go func() {
		time.Sleep(d)
		fn()
	}()
}

func inBubble(t *testing.T, fn func(t *testing.T, p *pollOf)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { fn(t, &pollOf{row: stmt.Row{Holder: "a", Left: time.Second}}) })
}

// prove has p see that reports work: the row is renewed, and that is reported.
func (p *pollOf) prove() {
	after(time.Second, func() {
		p.heard(Written)
		p.renew()
	})
	p.run(2 * time.Second)
	p.times = nil
}

// A release is found within the time that its commit takes once more, and a millisecond.
func TestWrites_AReleaseIsFoundSoon(t *testing.T) {
	t.Parallel()
	for _, commit := range []time.Duration{0, 5 * time.Millisecond, 70 * time.Millisecond, 200 * time.Millisecond} {
		for _, proven := range []bool{false, true} {
			t.Run("", func(t *testing.T) {
				inBubble(t, func(t *testing.T, p *pollOf) {
					if proven {
						p.prove()
					}
					var released time.Time
					after(3*time.Second, func() {
						p.heard(Written)
						time.Sleep(commit)
						released = time.Now()
						p.release()
					})
					p.run(time.Minute)
					if took := time.Since(released); took > commit+2*firstAfter {
						t.Errorf("a commit of %v, proven %v: found after %v", commit, proven, took)
					}
				})
			})
		}
	}
}

// A poll may find the first of two writes, and come before the second one's commit.
func TestWrites_TheSecondOfTwoIsFoundSoon(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pollOf) {
		p.prove()
		var released time.Time
		after(3*time.Second, func() {
			p.heard(Written)
			time.Sleep(4500 * time.Microsecond)
			p.renew()
			time.Sleep(500 * time.Microsecond)
			p.heard(Written)
			time.Sleep(5 * time.Millisecond)
			released = time.Now()
			p.release()
		})
		p.run(time.Minute)
		if took := time.Since(released); took > 10*time.Millisecond {
			t.Errorf("found after %v", took)
		}
	})
}

// While nothing is written there are few polls, but only after reports have been seen to work.
func TestWrites_CalmIsTrustedOnceProven(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pollOf) {
		count := func(row func()) int {
			p.times = nil
			after(5*time.Second, row)
			p.run(10 * time.Second)
			return len(p.times)
		}
		nothing := func() {}
		before := count(nothing)
		p.prove()
		calm := count(nothing)
		unreported := count(p.renew)
		after := count(nothing)
		if calm > before/10 || unreported < before/3 || after < before*9/10 {
			t.Errorf("polls in 10 s: %d without a proof, %d with one, %d with a change that was not reported, %d after that", before, calm, unreported, after)
		}
		p.prove()
		p.heard(Unwatched)
		if n := count(nothing); n < before*9/10 {
			t.Errorf("%d polls in 10 s, although nothing is watched", n)
		}
	})
}

// TestWrites_OfOthersCostNoMore has another program write all the time.
func TestWrites_OfOthersCostNoMore(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond, 120 * time.Millisecond, 600 * time.Millisecond} {
		t.Run(every.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, p *pollOf) {
				p.run(20 * time.Second)
				before := len(p.times)
				p.prove()
				go func() {
					for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(every) {
						p.heard(Written)
					}
				}()
				p.run(20 * time.Second)
				time.Sleep(every)
				if n := len(p.times); n > before*4/3+2*spare {
					t.Errorf("%d polls with a write each %v, %d without", n, every, before)
				}
			})
		})
	}
}

// A waiter that goes by another rule polls neither sooner nor later.
func TestWrites_Regardless(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pollOf) {
		p.heard(Written)
		p.heard(Unwatched)
		p.writes = writes{works: true}
		call := p.join(stmt.Claim{}, Pace{Longest: time.Second, Watched: true, Regardless: true})
		p.heard(Written)
		began := time.Now()
		<-call.answer
		if pause := time.Since(began); pause < 200*time.Millisecond || pause > 250*time.Millisecond {
			t.Errorf("a poll after %v", pause)
		}
		p.leave(call)
	})
}
