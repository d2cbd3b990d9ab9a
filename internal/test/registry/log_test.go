package registry_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/observe"
)

// A logBuffer is a writer for several goroutines.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// lines returns the level and the message of each line since the last call.
func (b *logBuffer) lines() (short []string) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, found := range regexp.MustCompile(`level=(\S+) msg="sqllock: ([^"]*)"`).FindAllStringSubmatch(b.text.String(), -1) {
		short = append(short, found[1]+" "+found[2])
	}
	b.text.Reset()
	return short
}

// logged returns a fixture whose registry writes to a log.
func logged(t *testing.T, level slog.Level) (s, other *fixture, log *logBuffer) {
	t.Helper()
	log = new(logBuffer)
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	other = newFixture(t, sqllock.Autocommit)
	s = other.another(sqllock.Autocommit)
	s.registry = newRegistry(t, s.repository, &sqllock.RegistryOptions{
		TTL: renewalTTL, IdleBetweenTries: 100 * time.Millisecond, Observers: []*observe.Observer{observe.SlogObserver(logger)},
	})
	s.lock = obtain(t, s.registry, "k")
	return s, other, log
}

func expectLines(t *testing.T, log *logBuffer, want ...string) {
	t.Helper()
	if got := log.lines(); !slices.Equal(got, want) {
		t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLog_OfALock has what a caller does, with a wait of many polls and many renewals: a line for
// each answer and each end.
func TestLog_OfALock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, other, log := logged(t, slog.LevelDebug)
		holder := held(other)
		is(t, check.ErrorOf(s.lock.TryLockFor(t.Context(), 10*time.Second)), sqllock.ErrNotAcquired)
		expectLines(t, log, "DEBUG not acquired")
		must(t, holder.Unlock(t.Context()))
		lease := held(s)
		must(t, check.Value(s.lock.Lock(lease.Context()))(t).Unlock(t.Context()))
		time.Sleep(10 * renewalTTL)
		must(t, lease.Unlock(t.Context()))
		expectLines(t, log, "DEBUG acquired", "DEBUG entered again", "DEBUG released")
	})
}

// TestLog_OfFailedRenewals has renewals fail often: one line when that begins, one when it ends,
// and one for each lease that is lost, and the same for the leases after that.
func TestLog_OfFailedRenewals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _, log := logged(t, slog.LevelInfo)
		held(s)
		const third = renewalTTL / 3
		fail := func() {
			s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		}
		time.Sleep(third)
		expectLines(t, log)
		fail()
		time.Sleep(third + 3*renewalTTL/15)
		expectLines(t, log, "WARN renewals fail")
		s.connector.Follow(nil)
		time.Sleep(third)
		expectLines(t, log, "INFO renewals succeed again")
		fail()
		time.Sleep(2 * renewalTTL)
		expectLines(t, log, "WARN renewals fail", "ERROR lease lost")

		s.connector.Follow(nil)
		time.Sleep(renewalTTL)
		held(s) // another lease, whose renewals fail from the first one on
		fail()
		time.Sleep(third)
		expectLines(t, log, "WARN renewals fail")
		s.connector.Follow(nil)
		time.Sleep(third)
		expectLines(t, log, "INFO renewals succeed again")
	})
}

// TestLog_OfElectionsAndFallbacks calls the functions as leader and the repository do.
func TestLog_OfElectionsAndFallbacks(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := observe.SlogObserver(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	o.Election(t.Context(), observe.Election{Role: "r", State: observe.ElectorLeader, Holder: "h-1", Token: 7})
	o.Election(t.Context(), observe.Election{Role: "r", State: observe.ElectorCandidate, Holder: "h-1", Token: 7, Led: time.Second, Cause: errGone})
	for range 3 {
		o.Fallback(t.Context(), observe.Fallback{Reason: errGone})
		o.Fallback(t.Context(), observe.Fallback{Reason: errGone, OutOfTurn: true})
		o.Fallback(t.Context(), observe.Fallback{Reason: errGone, Unwoken: true})
	}
	for _, want := range []string{
		"level=DEBUG msg=\"sqllock: election\" role=r state=leader holder=h-1 token=7\n",
		fmt.Sprintf("state=candidate holder=h-1 token=7 led=1s cause=%q", errGone),
		"level=WARN msg=\"sqllock: acquisitions take more round trips than they should\"",
		"level=WARN msg=\"sqllock: a fair lock is not acquired in the order of arrival\"",
		"level=WARN msg=\"sqllock: releases do not wake other processes\"",
	} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, log.String())
		}
	}
	if observe.SlogObserver(nil) == nil {
		t.Error("no observer")
	}
}
