package locktable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/transaction"
	"github.com/sqllock/sqllock/internal/turns"
)

// A Result is the answer to an attempt to acquire.
type Result struct {
	// Acquired reports whether the row carries the claim's holder now.
	Acquired bool
	// Token is the fencing token of the acquisition.
	Token int64
	// Row is the row that is in the way if Acquired is false. It is zero if the row went
	// away in the meantime.
	Row Row
	// Sent is when the statement was sent that has acquired the row: the last one, after lost races.
	Sent time.Time
	// Batched reports whether a statement for several rows gave the answer.
	Batched bool
}

// acquisitions make attempts to acquire: each is sent as often as the policy says. They know what to do about leftover rows
// that are in their way.
type acquisitions struct {
	*database

	sender    *sender
	plain     batched[Result]
	unparking batched[Result] // rows that are parked
	parked    *parked
	leftovers *leftovers
	reads     *reads
	turns     *turns.Queue
	// refusalsLockRows reports whether a refused attempt locks the row for several round trips.
	refusalsLockRows bool
}

// Acquire inserts the claim's row, or takes it over if it has expired or carries this very holder: a statement that
// is sent again after a lost race recognises its own row. It does not wait for another holder.
//
// An attempt that keeps losing races, or meets a row that a transaction has pinned, counts as not acquired. One that meets a
// leftover row of this client deletes it, and is made again.
//
// If the outcome is unknown (the connection broke, or ctx ended, while the transaction was being committed), Acquire returns
// the error, and cleans up: see [leftovers.CleanUp]. So it does if the connection was closed, and the statement was
// sent again and refused: then the error is of kind [dbcall.MaybeWritten]. After an error the holder must not be used
// again, for a deletion of its row may come late.
//
// If c.InOrder is set, and another session has the turn of that key, c is not acquired, although the row may be free. If
// one row is not acquired then, it is not read, for its caller will wait for its turn, whatever is in the way.
func (a *acquisitions) Acquire(ctx context.Context, c Claim) (Result, error) {
	return a.acquire(ctx, c, false)
}

// acquire is Acquire. cleared reports whether an attempt has met a leftover row of this client, and has deleted it.
func (a *acquisitions) acquire(ctx context.Context, c Claim, cleared bool) (_ Result, err error) {
	if err := ctx.Err(); err != nil {
		return Result{}, a.server.Explain(ctx, acquiring.Op, err)
	}
	if a.file.IsGone() {
		return Result{}, &dbcall.Error{Op: acquiring.Op, Kind: dbcall.WrongTable, Err: errGone}
	}
	if c.InOrder != "" {
		if err := a.turns.CheckSessions(ctx); err != nil {
			return Result{}, err
		}
		c.Turn = a.turns.Number(c.InOrder)
	}
	parked := ""
	if a.parked.n.Load() > 0 && c.Turn == 0 && !c.IsJoint() {
		parked = a.parked.holderOf(c.LockKey)
		c.Parked = parked != ""
	}
	var leftovers []Claim // whose rows it may meet, or their deletion by others
	if a.leftovers.claims.Len() > 0 {
		leftovers = a.leftovers.of(c.LockKeys())
	}
	o, err := a.attempt(ctx, &c)
	if c.Parked && err == nil && !o.Value.Acquired {
		o, err = a.attemptUnparked(ctx, &c, parked, o)
	}
	got := o.Value
	if o.Err != nil && o.Unknown || c.Resent && !got.Acquired {
		grace := bounded.Grace
		if errors.Is(o.Err, bounded.ErrNoAnswer) { // the caller has waited for the driver already
			grace = 0
		}
		a.leftovers.cleanUp(ctx, c, grace)
	}
	pinned := err != nil && dbcall.Is(err, dbcall.PinnedRow)
	switch {
	case c.Resent && !got.Acquired && (err == nil || dbcall.Is(err, dbcall.Race) || pinned):
		return Result{}, &dbcall.Error{Op: acquiring.Op, Kind: dbcall.MaybeWritten, Err: dbcall.ErrMaybeWritten}
	case err == nil:
	case pinned, dbcall.Is(err, dbcall.Race):
		got, err = Result{}, nil // too late this time
	default:
		return Result{}, err
	}
	if got.Acquired {
		return got, nil
	}
	if got.Row == (Row{}) && (c.Turn == 0 || c.IsJoint() || a.leftovers.Any()) {
		got.Row, _, err = a.reads.Read(ctx, c)
		if err == nil && c.Turn == 0 && (got.Row == (Row{}) || got.Row.Expired()) && a.home.IsKnown() {
			err = a.explainFree(ctx)
		}
	}
	if !pinned && got.Row.IsReleased() {
		got.Row = Row{} // it was taken when the attempt was refused, and is not what was in the way
	}
	// The sweep may have deleted what was in the way before it was read, or since: then it is no leftover any more.
	isGone := len(leftovers) > 0 && (got.Row == (Row{}) || got.Row.Expired() || slices.ContainsFunc(leftovers, got.Row.IsOf))
	if err == nil && !cleared && (isGone || a.leftovers.Includes(got.Row)) {
		return a.acquireAgain(ctx, c, got)
	}
	return got, err
}

// attemptUnparked follows an attempt that has not found the row of c where this process had parked it with a holder. It makes a
// plain one, unless the row is held. refused is the outcome of the first.
func (a *acquisitions) attemptUnparked(ctx context.Context, c *Claim, holder string, refused batch.Outcome[Result]) (o batch.Outcome[Result], err error) {
	row, _, err := a.reads.Read(ctx, *c)
	if err != nil || row != (Row{}) && !row.Expired() && row.Holder != c.Holder {
		refused.Value.Row = row
		return refused, err
	}
	a.parked.forget(c.LockKey, holder)
	c.Parked = false
	return a.attempt(ctx, c)
}

// attempt makes one attempt: it sends an acquisition, again after lost races.
func (a *acquisitions) attempt(ctx context.Context, c *Claim) (o batch.Outcome[Result], err error) {
	verb := &a.plain
	if c.Parked {
		verb = &a.unparking
	}
	for r := (dbcall.Retry{Policy: acquiring, Server: a.server, Began: time.Now()}); ; {
		sent := time.Now()
		o = verb.do(ctx, *c)
		o.Value.Sent = sent // no earlier one has written the row
		c.Resent = c.Resent || o.Resent
		if o.Err == nil {
			return o, nil
		}
		if o.Unknown && a.server.IsNotNow(o.Err) {
			o.Err = fmt.Errorf("%w: %w", dbcall.ErrMaybeWritten, o.Err) // not to be sent again
		}
		if c.Turn != 0 && a.server.IsOf(o.Err, sqltext.Exhausted) { // it cannot look whether the turn is free
			a.turns.FallBack(o.Err)
			c.Turn = 0
			continue
		}
		if !r.Again(ctx, o.Err) {
			return o, r.Explain(ctx, o.Err)
		}
	}
}

// acquireAgain deletes the leftover rows of c's keys, one of which was in the way of an attempt, and makes another one.
func (a *acquisitions) acquireAgain(ctx context.Context, c Claim, got Result) (Result, error) {
	switch err := a.leftovers.deleteOf(ctx, c); {
	case err != nil && !dbcall.Is(err, dbcall.PinnedRow):
		return Result{}, ofAttempt(err)
	case err != nil && a.leftovers.Includes(got.Row): // it is pinned
		return got, nil
	}
	// A row that was not there any more has been deleted by others, such as the sweep; or it was read on a server that
	// lags behind, which is why this is done once.
	return a.acquire(ctx, c, true)
}

// ofAttempt makes the error of a deletion that of the attempt for which it was sent: a caller that waits holds nothing that
// it could release.
func ofAttempt(err error) error {
	var e *dbcall.Error
	if !errors.As(err, &e) {
		return err
	}
	return e.Of(acquiring.Op)
}

// explainFree returns an error if a row that looks free could not be acquired because the server is no longer a
// member of its cluster.
func (a *acquisitions) explainFree(ctx context.Context) error {
	found, err := dbcall.CallInTime(ctx, a.server, reading, 0, func(ctx context.Context) (probe.Cluster, error) {
		// Without its MEMBER_STATE the answer would read as that of a server without a group.
		return transaction.On(ctx, a.pool, func(conn *sql.Conn) (probe.Cluster, error) { return probe.AskCluster(ctx, conn, a.statements.Cluster) })
	}, nil)
	if left := a.home.LeftBy(found); err == nil && left != nil {
		return &dbcall.Error{Op: acquiring.Op, Kind: dbcall.Failed, Err: left}
	}
	// Another server has answered, or this one has joined meanwhile; or it cannot be asked.
	return nil
}

// RefusalsLockRows reports whether a refused attempt to acquire locks the row for several round trips, so that a
// caller who tries only once should read it first. It does on MariaDB.
func (a *acquisitions) RefusalsLockRows() bool { return a.refusalsLockRows }
