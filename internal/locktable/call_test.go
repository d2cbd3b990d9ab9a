package locktable

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
)

var (
	errRace    = errors.New("race")
	errBlocked = errors.New("blocked")
	errOldPlan = errors.New("old plan")
)

func classify(err error) dialect.Class {
	switch {
	case errors.Is(err, errRace):
		return dialect.Transient
	case errors.Is(err, errBlocked):
		return dialect.Blocked
	case errors.Is(err, errOldPlan):
		return dialect.OldPlan
	default:
		return dialect.Unknown
	}
}

// sending runs a call whose statement always fails with err after d, and returns how often it
// was sent and how long the call took.
func sending(ctx context.Context, p policy, ttl, d time.Duration, err error) (times int64, took time.Duration, failed error) {
	var sent atomic.Int64
	began := time.Now()
	_, failed = callAlone(ctx, &Table{errors: classify}, p, ttl, func(context.Context) (int, error) {
		sent.Add(1)
		time.Sleep(d)
		return 0, err
	}, nil)
	return sent.Load(), time.Since(began), failed
}

func TestLostRacesAreSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent, _, err := sending(t.Context(), acquiring, time.Second, 0, errRace)
		if sent != 11 || !Is(err, Race) {
			t.Errorf("an acquisition was sent %d times: %v", sent, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		sent, took, err := sending(ctx, reading, time.Second, 0, errRace)
		if sent < 100 || took != time.Minute || !Is(err, Ended) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errRace) {
			t.Errorf("a read was sent %d times in %v: %v", sent, took, err)
		}
	})
}

// A pooler may keep a plan that is old. That is no race, which a waiter would take for a lock that is held.
func TestOldPlansHaveALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, p := range []policy{acquiring, reading, releasing, renewing, listing} {
			sent, _, err := sending(ctx, p, time.Second, 0, errOldPlan)
			if sent != maxOldPlans+1 || !Is(err, Failed) || !errors.Is(err, errOldPlan) {
				t.Errorf("%s: sent %d times: %v", p.op, sent, err)
			}
			left := maxOldPlans
			_, err = call(ctx, classify, p, func(context.Context) (none struct{}, err error) {
				if left--; left >= 0 {
					err = errOldPlan
				}
				return none, err
			})
			if err != nil {
				t.Errorf("%s: %v", p.op, err)
			}
		}
	})
}

func TestPinnedRowsHaveALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, p := range []policy{acquiring, reading, releasing, keeping, guarding} {
			sent, took, err := sending(t.Context(), p, time.Second, 0, errBlocked)
			if took < p.pinned || took > p.pinned+longestPause || p.pinned == 0 && sent != 1 || Is(err, PinnedRow) == p.lockless || !errors.Is(err, errBlocked) {
				t.Errorf("%s: sent %d times in %v: %v", p.op, sent, took, err)
			}
		}
	})
}

func TestAnAnswerHasALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for ttl, limit := range map[time.Duration]time.Duration{
			time.Second: answerTimeout,
			time.Minute: time.Minute,
		} {
			_, took, err := sending(t.Context(), reading, ttl, time.Hour, nil)
			if took != limit+bounded.Grace || !Is(err, NoAnswer) || !errors.Is(err, bounded.ErrNoAnswer) {
				t.Errorf("time-to-live %v: %v after %v", ttl, err, took)
			}
		}
		time.Sleep(time.Hour) // until the statements that were left behind return
	})
}

// A statement that may have been applied is not sent again, whatever its error.
func TestAnUnknownOutcomeIsNotSentAgain(t *testing.T) {
	t.Parallel()
	sent, _, err := sending(t.Context(), acquiring, time.Second, 0, errors.Join(errOutcomeUnknown, errRace))
	if sent != 1 || !Is(err, OutcomeUnknown) {
		t.Errorf("sent %d times: %v", sent, err)
	}
	_, _, err = sending(t.Context(), acquiring, time.Second, 0, errors.Join(errOutcomeUnknown, errors.New("gone")))
	if !Is(err, Failed) {
		t.Error(err)
	}
}
