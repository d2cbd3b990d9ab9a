package observe

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// SlogObserver returns an observer that writes to logger, or to slog.Default() if that is nil.
//
//   - A lease that is lost is an error, and so is a [Refusal].
//   - When renewals begin to fail there is one warning, and one line of level Info when they
//     succeed again.
//   - A [Wait] is a warning.
//   - The first [Fallback] of each kind is a warning.
//   - Everything else has level Debug: one line for each answer to a caller that asked for
//     a lock, for each end of a lease, for each change of an elector, and for each call of a job, whose error is its
//     caller's to log. Polls are not logged, nor is a renewal with the same result as the one before.
//
// Lines are written with the contexts of the events, so a handler finds the caller's trace.
// Use one for each registry: it does not know to which registry a renewal belongs.
func SlogObserver(logger *slog.Logger) *Observer {
	if logger == nil {
		logger = slog.Default()
	}
	l := &slogObserver{logger: logger, failing: make(map[time.Duration]failure)}
	return &Observer{
		Acquire: func(ctx context.Context, _ AcquireStart) (context.Context, func(AcquireEnd)) {
			if !logger.Enabled(ctx, slog.LevelDebug) {
				return ctx, nil
			}
			return ctx, func(e AcquireEnd) { l.acquired(ctx, e) }
		},
		LeaseEnd: l.ended, Renewal: l.renewed, Election: l.elected, Fallback: l.fellBack,
		Refusal: func(ctx context.Context, e Refusal) {
			l.write(ctx, slog.LevelError, "job refused", slog.String("key", e.Key), slog.Any("error", e.Err))
		},
		Waiting: l.waits, JobRun: l.jobRan,
	}
}

type slogObserver struct {
	logger    *slog.Logger
	fallback  atomic.Bool // there was one
	outOfTurn atomic.Bool // there was one about a fair lock
	unwoken   atomic.Bool // there was one about Wake

	mu      sync.Mutex
	failing map[time.Duration]failure // the times-to-live whose last renewal has failed
}

// A failure is since when renewals fail, and when the last one did.
type failure struct{ since, last time.Time }

func (l *slogObserver) write(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	l.logger.LogAttrs(ctx, level, "sqllock: "+text, attrs...)
}

func (l *slogObserver) acquired(ctx context.Context, e AcquireEnd) {
	attrs := []slog.Attr{slog.String("key", e.Key), slog.Duration("took", e.Took), slog.Duration("queued", e.Queued)}
	if e.HeldBy != "" {
		attrs = append(attrs, slog.String("held_by", e.HeldBy))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("outcome", string(e.Outcome)), slog.Any("error", e.Err))
		l.write(ctx, slog.LevelDebug, "not acquired", attrs...)
		return
	}
	attrs = append(attrs, slog.String("holder", e.Holder), slog.Int64("token", e.Token))
	text := "acquired"
	if e.Reentered {
		text = "entered again"
	}
	l.write(ctx, slog.LevelDebug, text, attrs...)
}

func (l *slogObserver) ended(ctx context.Context, e LeaseEnd) {
	level, text := slog.LevelDebug, "released"
	if e.Reason.Lost() {
		level, text = slog.LevelError, "lease lost"
	}
	attrs := []slog.Attr{
		slog.String("key", e.Key), slog.String("holder", e.Holder), slog.Int64("token", e.Token),
		slog.String("reason", string(e.Reason)), slog.Duration("held", e.Held), slog.Duration("left", e.Left),
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	l.write(ctx, level, text, attrs...)
}

func (l *slogObserver) renewed(ctx context.Context, e Renewal) {
	now := time.Now()
	l.mu.Lock()
	f, failing := l.failing[e.TTL]
	// If there was no renewal for a whole time-to-live, the leases were gone: these are others.
	if !failing || e.Err != nil && now.Sub(f.last) > e.TTL {
		f.since, failing = now, false
	}
	if e.Err == nil {
		delete(l.failing, e.TTL)
	} else {
		l.failing[e.TTL] = failure{f.since, now}
	}
	l.mu.Unlock()
	switch {
	case e.Err != nil && !failing:
		l.write(ctx, slog.LevelWarn, "renewals fail", slog.Duration("ttl", e.TTL), slog.Int("leases", e.Leases),
			slog.Duration("left", e.Left), slog.Any("error", e.Err))
	case e.Err == nil && failing:
		l.write(ctx, slog.LevelInfo, "renewals succeed again", slog.Duration("ttl", e.TTL), slog.Int("leases", e.Leases),
			slog.Duration("after", now.Sub(f.since)))
	}
}

func (l *slogObserver) elected(ctx context.Context, e Election) {
	attrs := []slog.Attr{slog.String("role", e.Role), slog.String("state", string(e.State))}
	if e.Holder != "" {
		attrs = append(attrs, slog.String("holder", e.Holder), slog.Int64("token", e.Token))
	}
	if e.Led > 0 {
		attrs = append(attrs, slog.Duration("led", e.Led))
	}
	if e.Cause != nil {
		attrs = append(attrs, slog.Any("cause", e.Cause))
	}
	l.write(ctx, slog.LevelDebug, "election", attrs...)
}

func (l *slogObserver) fellBack(ctx context.Context, e Fallback) {
	level, text, before := slog.LevelDebug, "acquisitions take more round trips than they should", &l.fallback
	switch {
	case e.OutOfTurn:
		text, before = "a fair lock is not acquired in the order of arrival", &l.outOfTurn
	case e.Unwoken:
		text, before = "releases do not wake other processes", &l.unwoken
	}
	if before.CompareAndSwap(false, true) {
		level = slog.LevelWarn
	}
	l.write(ctx, level, text, slog.Any("reason", e.Reason))
}

func (l *slogObserver) waits(ctx context.Context, e Wait) {
	attrs := []slog.Attr{slog.String("key", e.Key), slog.Duration("waited", e.Waited.Round(time.Millisecond))}
	if e.Holder != "" {
		attrs = append(attrs, slog.String("held_by", e.Holder))
	}
	if e.Process != "" {
		attrs = append(attrs, slog.String("process", e.Process))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	l.write(ctx, slog.LevelWarn, "still waiting for a lock", attrs...)
}

func (l *slogObserver) jobRan(ctx context.Context, e JobRun) {
	attrs := []slog.Attr{slog.String("job", e.Job), slog.String("outcome", string(e.Outcome)), slog.Duration("took", e.Took)}
	if !e.Next.IsZero() {
		attrs = append(attrs, slog.Time("next", e.Next))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	l.write(ctx, slog.LevelDebug, "job", attrs...)
}
