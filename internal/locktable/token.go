package locktable

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/stmt"
)

// TokensPerAcquisition is how many fencing tokens lie between two numbers that the database gave: one for each holder
// to whom the row can be handed on without the database.
const TokensPerAcquisition = 1 << 16

// lastNumber is the last number of which tokens can be made.
const lastNumber = math.MaxInt64 / TokensPerAcquisition

// trimEvery is how many tokens a process draws from a table until it deletes the rows that all processes have left
// there.
const trimEvery = 1024

// tokens makes fencing tokens of the numbers that the database gives.
type tokens struct {
	source string // the sequence or table that numbers are drawn from
	// drawn counts. The numbers themselves cannot say when to trim: with auto_increment_increment=2 they are all odd.
	drawn atomic.Uint64
}

// seed counts from a random start, so that the rows of processes of which none draws many are deleted, too.
func (t *tokens) seed(source string) {
	t.source = source
	t.drawn.Store(uint64(jitter.N(int64(trimEvery))))
}

// of makes a fencing token of a number. It is 0 where no numbers are drawn.
func (t *tokens) of(number int64) (int64, error) {
	if number < 0 || number > lastNumber {
		return 0, fmt.Errorf("%s gave the number %d, and fencing tokens can be made of 0 to %d: "+
			"set it back to 1 and have the storages that check tokens forget them, or set DisableFencing",
			t.source, number, int64(lastNumber))
	}
	return number * TokensPerAcquisition, nil
}

// inserted makes a fencing token of the number that an INSERT drew.
func (t *tokens) inserted(result sql.Result) (int64, error) {
	number, err := result.LastInsertId()
	if err != nil {
		return 0, err
	}
	return t.of(number)
}

// trimBefore is below which number rows are deleted once token was drawn.
func trimBefore(token int64) int64 { return token/TokensPerAcquisition - trimEvery }

// draw draws a fencing token by a statement of its own, after the acquire statement, for the owner of the row alone.
// Only the owner draws, so the tokens of one key are drawn in the order of its holders: also outside of a
// transaction, because a lease that is over before the answer comes is none.
func (a *sender) draw(ctx context.Context, db stmt.Executor, v stmt.Values) (token int64, acquired bool, err error) {
	s := a.statements.Draw
	result, err := db.ExecContext(ctx, s.Text, s.Args(v)...)
	if err != nil {
		return 0, false, err
	}
	// This count can be trusted on MySQL too: rows were inserted, not changed.
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return 0, false, err
	}
	token, err = a.tokens.inserted(result)
	return token, err == nil, err
}

// trimTimeout bounds the statement that trims. If it fails, a later one does the work.
const trimTimeout = time.Second

// countToken keeps the table that tokens are drawn from small. The statement for that runs in the background.
// WaitInFlight waits for it.
func (a *sender) countToken(token int64) {
	if a.statements.Trim.Text != "" && a.tokens.drawn.Add(1)%trimEvery == 0 {
		done := a.inFlight.begin()
		go func() {
			defer done()
			a.trim(token)
		}()
	}
}

func (a *sender) trim(token int64) {
	ctx, cancel := context.WithTimeout(context.Background(), trimTimeout)
	defer cancel()
	// The lock is acquired: what is left in that table does not concern its holder.
	_, _ = bounded.Do(ctx, bounded.Grace, func() (int64, error) {
		try, n := a.pool.Try(), int64(0)
		for try.Next(ctx) {
			n, try.Err = stmt.Exec(ctx, try.Conn, a.statements.Trim, stmt.Values{Token: trimBefore(token)})
		}
		return n, try.Err
	}, nil)
}
