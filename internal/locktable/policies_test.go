package locktable

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
)

var (
	errRace    = errors.New("race")
	errBlocked = errors.New("blocked")
	errOldPlan = errors.New("old plan")
)

// What package dbcall allows.
const (
	oldPlans              = 10
	longestPauseAfterRace = 64 * time.Millisecond
)

func classify(err error) sqltext.Class {
	switch {
	case errors.Is(err, errRace):
		return sqltext.Transient
	case errors.Is(err, errBlocked):
		return sqltext.Blocked
	case errors.Is(err, errOldPlan):
		return sqltext.OldPlan
	default:
		return sqltext.Unknown
	}
}

// sending runs a call whose statement always fails with err after d, and returns how often it
// was sent and how long the call took.
func sending(ctx context.Context, p dbcall.Policy, ttl, d time.Duration, err error) (times int64, took time.Duration, failed error) {
	var sent atomic.Int64
	began := time.Now()
	_, failed = dbcall.CallInTime(ctx, dbcall.Server{Classify: classify}, p, ttl, func(context.Context) (int, error) {
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
		if sent != 11 || !dbcall.Is(err, dbcall.Race) {
			t.Errorf("an acquisition was sent %d times: %v", sent, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		sent, took, err := sending(ctx, reading, time.Second, 0, errRace)
		if sent < 100 || took != time.Minute || !dbcall.Is(err, dbcall.Ended) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errRace) {
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
		for _, p := range []dbcall.Policy{acquiring, reading, releasing, renewing, listing} {
			sent, _, err := sending(ctx, p, time.Second, 0, errOldPlan)
			if sent != oldPlans+1 || !dbcall.Is(err, dbcall.Failed) || !errors.Is(err, errOldPlan) {
				t.Errorf("%s: sent %d times: %v", p.Op, sent, err)
			}
			left := oldPlans
			_, err = dbcall.Call(ctx, dbcall.Server{Classify: classify}, p, func(context.Context) (none struct{}, err error) {
				if left--; left >= 0 {
					err = errOldPlan
				}
				return none, err
			})
			if err != nil {
				t.Errorf("%s: %v", p.Op, err)
			}
		}
	})
}

func TestPinnedRowsHaveALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, p := range []dbcall.Policy{acquiring, reading, releasing, keeping, guarding} {
			sent, took, err := sending(t.Context(), p, time.Second, 0, errBlocked)
			if took < p.Pinned || took > p.Pinned+longestPauseAfterRace || p.Pinned == 0 && sent != 1 || dbcall.Is(err, dbcall.PinnedRow) == p.Lockless || !errors.Is(err, errBlocked) {
				t.Errorf("%s: sent %d times in %v: %v", p.Op, sent, took, err)
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
			if took != limit+bounded.Grace || !dbcall.Is(err, dbcall.NoAnswer) || !errors.Is(err, bounded.ErrNoAnswer) {
				t.Errorf("time-to-live %v: %v after %v", ttl, err, took)
			}
		}
		time.Sleep(time.Hour) // until the statements that were left behind return
	})
}

// A statement that may have been applied is not sent again, whatever its error.
func TestAnUnknownOutcomeIsNotSentAgain(t *testing.T) {
	t.Parallel()
	sent, _, err := sending(t.Context(), acquiring, time.Second, 0, errors.Join(dbcall.ErrMaybeWritten, errRace))
	if sent != 1 || !dbcall.Is(err, dbcall.MaybeWritten) {
		t.Errorf("sent %d times: %v", sent, err)
	}
	_, _, err = sending(t.Context(), acquiring, time.Second, 0, errors.Join(dbcall.ErrMaybeWritten, errors.New("gone")))
	if !dbcall.Is(err, dbcall.Failed) {
		t.Error(err)
	}
}
