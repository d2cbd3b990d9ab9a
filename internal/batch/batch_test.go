package batch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// A fixture is a batcher of strings. The key of a string is the part before its dash. Each batch takes a second.
type fixture struct {
	*batch.Batcher[string, string]
	mu      sync.Mutex
	batches []string
	left    []string
	late    []string
	take    time.Duration
	// if obedient is true, batches fail at the end of their context
	obedient bool
}

func newFixture(most, lanes int) *fixture {
	s := &fixture{take: time.Second}
	s.Batcher = batch.New(batch.Settings[string, string]{
		One: func(ctx context.Context, item string) batch.Outcome[string] {
			var outcomes [1]batch.Outcome[string]
			s.run(ctx, []string{item}, outcomes[:])
			return outcomes[0]
		},
		Many: s.run,
		Key:  func(item string) string { key, _, _ := strings.Cut(item, "-"); return key },
		OnLeave: func(item string) func(batch.Outcome[string]) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.left = append(s.left, item)
			return func(o batch.Outcome[string]) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.late = append(s.late, item+" "+o.Value)
			}
		},
		Max: most, SlowAfter: 10 * time.Second, Lanes: lanes,
		Timeout: 3 * time.Hour, Grace: time.Minute, TimedOut: batch.Outcome[string]{Value: "?", Err: errTimedOut, Unknown: true},
		IsFinal: func(err error) bool { return !errors.Is(err, context.Canceled) },
	})
	return s
}

func (s *fixture) run(ctx context.Context, items []string, outcomes []batch.Outcome[string]) {
	s.mu.Lock()
	s.batches = append(s.batches, strings.Join(items, " "))
	take, obedient := s.take, s.obedient
	s.mu.Unlock()
	if !sleep(ctx, take) && obedient {
		for i := range outcomes {
			outcomes[i].Err = ctx.Err()
		}
		return
	}
	for i, item := range items {
		outcomes[i].Value = strings.ToUpper(item)
		if strings.HasPrefix(item, "bad") {
			outcomes[i] = batch.Outcome[string]{Err: errBad}
		}
	}
}

// sleep sleeps for d even if ctx ends, and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	time.Sleep(d)
	return ctx.Err() == nil
}

var (
	errBad      = errors.New("bad")
	errTimedOut = errors.New("timed out")
)

// start passes the items to Do in the given order, each in a goroutine of its own.
func (s *fixture) start(ctx context.Context, t *testing.T, items ...string) *sync.WaitGroup {
	t.Helper()
	var working sync.WaitGroup
	for _, item := range items {
		working.Go(func() {
			outcome := s.Do(ctx, item)
			if want := strings.ToUpper(item); outcome.Err == nil && outcome.Value != want {
				t.Errorf("%s got %s", item, outcome.Value)
			}
			if errors.Is(outcome.Err, errBad) != strings.HasPrefix(item, "bad") {
				t.Errorf("%s: %v", item, outcome.Err)
			}
		})
		synctest.Wait()
	}
	return &working
}

func (s *fixture) want(t *testing.T, batches ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	check.Same(t, "batches", s.batches, batches)
}

func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func TestAnIdleBatcherRunsACallImmediately(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(10, 1)
		for _, item := range []string{"a", "b"} {
			began := time.Now()
			s.start(t.Context(), t, item).Wait()
			check.Equal(t, "took", time.Since(began), time.Second)
		}
		s.want(t, "a", "b")
	})
}

func TestWaitingCallsAreBatched(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(10, 1)
		s.start(t.Context(), t, "a", "b", "c", "bad", "d").Wait()
		s.want(t, "a", "b c bad d")
	})
}

func TestABatchHasOneItemOfAKeyAndAtMostMax(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(3, 1)
		s.start(t.Context(), t, "a-1", "b-1", "b-2", "c-1", "d-1", "e-1", "b-3").Wait()
		s.want(t, "a-1", "b-1 c-1 d-1", "b-2 e-1", "b-3")
	})
}

func TestAQueuedCallWhoseContextEndsIsNotRun(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(10, 1)
		working := s.start(t.Context(), t, "a", "b")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		began := time.Now()
		outcome := s.Do(ctx, "gone")
		if outcome.Unknown || !errors.Is(outcome.Err, context.Canceled) || time.Since(began) != 500*time.Millisecond {
			t.Error(outcome, time.Since(began))
		}
		working.Wait()
		s.want(t, "a", "b")
	})
}

func TestACallThatLeavesItsBatchDoesNotAffectOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(10, 1)
		working := s.start(t.Context(), t, "a")
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		leaving := s.start(ctx, t, "gone")
		staying := s.start(t.Context(), t, "b")
		leaving.Wait()
		staying.Wait()
		working.Wait()
		s.want(t, "a", "gone b")
		s.mu.Lock()
		defer s.mu.Unlock()
		if !slices.Equal(s.left, []string{"gone"}) || !slices.Equal(s.late, []string{"gone GONE"}) {
			t.Error(s.left, s.late)
		}
	})
}

func TestASlowBatchDoesNotBlockOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(10, 2)
		s.take = time.Hour
		slow := s.start(t.Context(), t, "a")
		s.mu.Lock()
		s.take = time.Second
		s.mu.Unlock()
		began := time.Now()
		s.start(t.Context(), t, "b", "c").Wait()
		check.Equal(t, "took", time.Since(began), 11*time.Second)
		s.start(t.Context(), t, "d").Wait()
		slow.Wait()
		s.want(t, "a", "b c", "d")
	})
}

// hurry makes batches take a second from now on.
func (s *fixture) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take = time.Second
}

func TestASecondSlowBatchDoesNotBlockOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(10, 2)
		s.take = 20 * time.Second
		s.start(t.Context(), t, "a").Wait()
		slow := s.start(t.Context(), t, "b")
		s.hurry()
		began := time.Now()
		s.start(t.Context(), t, "c").Wait()
		check.Equal(t, "took", time.Since(began), 11*time.Second)
		slow.Wait()
	})
}

func TestACallBehindASlowBatchDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(10, 2)
		s.take = time.Hour
		slow := s.start(t.Context(), t, "a")
		time.Sleep(time.Minute)
		s.hurry()
		began := time.Now()
		s.start(t.Context(), t, "b").Wait()
		check.Equal(t, "took", time.Since(began), time.Second)
		slow.Wait()
	})
}

func TestABatchThatDoesNotReturnTimesOut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(10, 1)
		s.take = 10 * time.Hour
		began := time.Now()
		outcome := s.Do(t.Context(), "a")
		if took := time.Since(began); !outcome.Unknown || !errors.Is(outcome.Err, errTimedOut) || outcome.Value != "?" || took != 3*time.Hour+time.Minute {
			t.Error(outcome, took)
		}
		s.hurry()
		s.start(t.Context(), t, "b").Wait()
		time.Sleep(10 * time.Hour)
		s.want(t, "a", "b")
		s.mu.Lock()
		defer s.mu.Unlock()
		if !slices.Equal(s.left, []string{"a"}) || !slices.Equal(s.late, []string{"a A"}) {
			t.Error(s.left, s.late)
		}
	})
}

func TestTheContextOfABatchEndsAtTheTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(10, 1)
		s.take, s.obedient = 3*time.Hour+time.Second, true
		outcome := s.Do(t.Context(), "a")
		if !errors.Is(outcome.Err, errTimedOut) || errors.Is(outcome.Err, context.Canceled) {
			t.Error(outcome)
		}
		s.obedient = false
		if outcome := s.Do(t.Context(), "bad"); !errors.Is(outcome.Err, errBad) {
			t.Error("an error that is final was replaced:", outcome)
		}
		s.hurry() // with a new context
		s.start(t.Context(), t, "b").Wait()
	})
}

func TestACallOfAnIdleBatcherAllocatesLittle(t *testing.T) {
	s := newFixture(10, 1)
	s.Batcher = batch.New(batch.Settings[string, string]{
		One: func(context.Context, string) batch.Outcome[string] { return batch.Outcome[string]{} },
		Key: func(item string) string { return item },
		Max: 10, SlowAfter: time.Second, Lanes: 1, Timeout: time.Minute,
	})
	ctx := t.Context()
	s.Do(ctx, "a") // creates the lane
	if n := testing.AllocsPerRun(100, func() { s.Do(ctx, "a") }); n > 4 {
		t.Errorf("%v allocations", n)
	}
}
