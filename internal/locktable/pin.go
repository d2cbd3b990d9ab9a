package locktable

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
)

// pins find out which transactions have rows locked.
type pins struct {
	*database

	soon sync.Mutex // while PinSoon asks
}

// A Pin is an open transaction that has a row locked.
type Pin struct {
	Session string        // as the server names it, with its user and program
	Since   time.Duration // for how long it has been open; negative if the user may not see that
}

// String returns what a person wants to know.
func (p Pin) String() string {
	text := "pinned by " + p.Session
	if p.Since >= 0 {
		text += ", whose transaction has been open for " + p.Since.Round(100*time.Millisecond).String()
	}
	return text
}

const (
	// pinTimeout is how long the question may take.
	pinTimeout = time.Second
	// soonTimeout is the same for a caller that waits for another answer.
	soonTimeout = 250 * time.Millisecond
)

// Pin returns which transaction has the row of a key locked, as far as the server tells this user.
// It is slow: it is for what a person reads.
func (p *pins) Pin(ctx context.Context, lockKey string) (pin Pin, ok bool) {
	return p.askForPin(ctx, pinTimeout, func(ctx context.Context) (Pin, error) { return p.pin(ctx, lockKey) })
}

// PinSoon is Pin for the error of a call that locks: it gives up soon, and only one caller at a time is answered.
func (p *pins) PinSoon(ctx context.Context, lockKey string) (pin Pin, ok bool) {
	return p.askForPin(ctx, soonTimeout, func(ctx context.Context) (Pin, error) {
		if !p.soon.TryLock() {
			return Pin{}, nil
		}
		defer p.soon.Unlock() // when its connection is free again, however long that takes
		return p.pin(ctx, lockKey)
	})
}

func (p *pins) askForPin(ctx context.Context, limit time.Duration, send func(context.Context) (Pin, error)) (Pin, bool) {
	if p.statements.Pin.Text == "" {
		return Pin{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, max(limit, p.server.TestPatience))
	defer cancel()
	pin, err := dbcall.CallInTime(ctx, p.server, reading, 0, send, nil)
	return pin, err == nil && pin != (Pin{})
}

func (p *pins) pin(ctx context.Context, lockKey string) (Pin, error) {
	return transaction.On(ctx, p.pool, func(conn *sql.Conn) (pin Pin, err error) {
		err = stmt.QueryFirst(ctx, conn, p.statements.Pin, stmt.Values{Claim: Claim{LockKey: lockKey}}, func(rows *sql.Rows) error {
			var since int64
			err := rows.Scan(&pin.Session, &since)
			pin.Since = time.Duration(since) * time.Microsecond
			return err
		})
		return pin, err
	})
}
