package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
)

// This file stands in for internal/locktable until that is there: the lease half of the
// package calls the database through it alone. Then "table" becomes "locktable.Table",
// "claim" "locktable.Claim" and so on, and this file goes.

// pinnedFor becomes locktable.PinnedFor.
const pinnedFor = longestPin

// tokensPerAcquisition becomes locktable.TokensPerAcquisition: how many fencing tokens an
// acquisition has, one for each hold that the row could be handed over to.
const tokensPerAcquisition = handOffs

type claim struct {
	LockKey, Holder string
	TTL             time.Duration
}

type result struct {
	Acquired bool
	Token    int64
	Row      Row
}

type outcome = Renewal

const (
	outcomeLost    = Lost
	outcomeRenewed = Renewed
	outcomePinned  = Pinned
)

type guardResult int

const (
	guardNotHeld guardResult = iota
	guardGuarded
	guardStaleSnapshot
)

type table struct{ r *Repository }

func (t *table) params(c claim) params { return t.r.paramsOf(c.LockKey, c.LockKey, c.Holder, c.TTL) }

func (t *table) NewHolder() string { return t.r.NewHolder() }

func (t *table) Acquire(ctx context.Context, c claim) (result, error) {
	got, err := t.r.acquire(ctx, t.params(c))
	return result(got), err
}

func (t *table) Read(ctx context.Context, c claim) (Row, bool, error) {
	return t.r.look(ctx, t.params(c))
}

func (t *table) ReadFirst(ctx context.Context, c claim) (Row, error) {
	return t.r.lookInTurn(ctx, t.params(c))
}

func (t *table) RefusalsLockRows() bool { return t.r.triesLockLong }

func (t *table) Renew(ctx context.Context, c claim, pinnedFor time.Duration, late func()) (bool, error) {
	return t.r.renew(ctx, t.params(c), pinnedFor, late)
}

func (t *table) RenewAll(ctx context.Context, claims []claim) ([]outcome, error) {
	p := params{rows: make([]params, len(claims))}
	for i, c := range claims {
		p.ttl, p.left = c.TTL, c.TTL
		p.rows[i] = t.params(c)
	}
	return t.r.renewPart(ctx, p)
}

func (t *table) Release(ctx context.Context, c claim) (bool, error) {
	got, err := t.r.remove(ctx, t.params(c))
	return got.done(), err
}

func (t *table) Keep(ctx context.Context, c claim, d time.Duration) (bool, error) {
	return t.r.leave(ctx, t.params(c), d)
}

func (t *table) Guard(ctx context.Context, tx Tx, c claim) (guardResult, error) {
	p := t.params(c)
	pinned, err := answered(ctx, "guard", "", func() (bool, error) {
		var one int
		s := t.r.statements.guard
		switch err := tx.QueryRowContext(ctx, s.text, s.args(p)...).Scan(&one); {
		case errors.Is(err, sql.ErrNoRows):
			return false, nil
		case t.r.isBlocked(err): // another session is changing it, for longer than this one waits
			return false, errors.Join(ErrDatabase, err)
		default:
			return err == nil, t.r.trouble(ctx, "guard", "", err)
		}
	})
	if err != nil || pinned {
		return guardGuarded, err
	}
	var held bool
	err = t.r.retry(ctx, "look up", "", func() (err error) {
		held, err = within(ctx, p.ttl, func(ctx context.Context) (bool, error) { return t.r.isHeld(ctx, p) }, nil)
		return err
	})
	if held {
		return guardStaleSnapshot, err
	}
	return guardNotHeld, err
}

func (t *table) Abandon(ctx context.Context, c claim) { t.r.abandon(ctx, t.params(c)) }
func (t *table) MarkUnsettled(c claim)                { t.r.abandonLater(t.params(c)) }
func (t *table) IsUnsettled(lockKey string) bool      { return t.r.abandoned.has(lockKey) }
func (t *table) Settle(ctx context.Context) error     { return t.r.orphans.wait(ctx) }

func (t *table) DeleteUnsettled(ctx context.Context) error {
	_, err := answered(ctx, "release", "", func() (struct{}, error) {
		return struct{}{}, t.r.clearAllAbandoned(ctx)
	})
	return err
}

// MaxReleases returns how many calls of Release at a time are of use: as many as the batches
// take, or a few if batching is disabled.
func (t *table) MaxReleases() int {
	if t.r.batchers == nil {
		return maxLanes
	}
	return maxLanes * maxBatch
}

func (t *table) Topic(lockKey string) string { return t.r.names.Topic(t.r.region, lockKey) }

func (t *table) Explain(ctx context.Context, op string, err error) error {
	return t.r.trouble(ctx, op, "", err)
}

func (t *table) IsRefusal(err error) bool { return t.r.isRefusal(err) }

func failure(err error, key string) error {
	if err == nil {
		return nil
	}
	lockKey, _ := SpringKeys(key)
	return &keyed{err, strings.ReplaceAll(err.Error(), lockKey, key)}
}

type keyed struct {
	error

	text string
}

func (e *keyed) Error() string { return e.text }
func (e *keyed) Unwrap() error { return e.error }

func isNoAnswer(err error) bool {
	return errors.Is(err, bounded.ErrNoAnswer) || errors.Is(err, errTimedOut)
}

func isOutcomeUnknown(err error) bool { return errors.Is(err, errOutcomeUnknown) }
