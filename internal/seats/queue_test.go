package seats

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	interval      = 200 * time.Millisecond
	longestStreak = 2 * time.Second
	stepBack      = 300 * time.Millisecond
)

// TestAProcessStepsBack has callers have the turn one after the other for longer than a streak may last.
func TestAProcessStepsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(interval)
		began, steps := time.Now(), 0
		for range 100 {
			before := time.Now()
			if err := q.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			switch waited := time.Since(before); waited {
			case 0:
			case stepBack:
				steps++
				if streak := before.Sub(began); streak < longestStreak || streak > longestStreak+100*time.Millisecond {
					t.Errorf("a streak of %v", streak)
				}
				began = time.Now()
			default:
				t.Errorf("it has waited for %v", waited)
			}
			time.Sleep(100 * time.Millisecond)
			q.leave()
		}
		if steps != 4 {
			t.Errorf("%d steps back", steps)
		}
		for range 100 { // others have had the time to lock the turn: there is no streak
			time.Sleep(stepBack)
			before := time.Now()
			if err := q.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(before); waited != 0 {
				t.Errorf("it has waited for %v", waited)
			}
			time.Sleep(100 * time.Millisecond)
			q.leave()
		}
	})
}

// TestTheQueueIsInOrder has callers come one after the other, and some of them give up: in the queue, and
// while the process steps back.
func TestTheQueueIsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(interval)
		if err := q.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		var entered []int
		var waiting sync.WaitGroup
		cancels := make([]context.CancelFunc, 10)
		for i := range cancels {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cancels[i] = cancel
			waiting.Go(func() {
				if q.enter(ctx) == nil {
					entered = append(entered, i) // one at a time
					q.leave()
				}
			})
			synctest.Wait()
		}
		cancels[3]()
		time.Sleep(2 * longestStreak)
		q.leave()
		synctest.Wait()
		cancels[0]() // it has let the streak end, and steps back
		waiting.Wait()
		want := []int{1, 2, 4, 5, 6, 7, 8, 9}
		if len(entered) != len(want) {
			t.Fatal(entered)
		}
		for i, n := range want {
			if entered[i] != n {
				t.Fatal(entered)
			}
		}
	})
}
