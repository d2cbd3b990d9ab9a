package sqllock

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	// handOffs is how many fencing tokens lie between two numbers that the database
	// gave: one for each holder to whom the row could be passed on without it.
	handOffs = 1 << 16
	// lastNumber is the last number of which tokens can be made.
	lastNumber = math.MaxInt64 / handOffs
)

// tokenOf makes a fencing token of a number that the database gave. It is 0 where no
// numbers are drawn.
func (r *Repository) tokenOf(number int64) (int64, error) {
	if number < 0 || number > lastNumber {
		return 0, fmt.Errorf("%s gave the number %d, and fencing tokens can be made of 0 to %d: "+
			"set it back to 1 and have the storages that check tokens forget them, or set WithoutFence",
			r.names.Fence, number, int64(lastNumber))
	}
	return number * handOffs, nil
}

// insertedToken makes a fencing token of the number that an INSERT drew.
func (r *Repository) insertedToken(result sql.Result) (int64, error) {
	number, err := result.LastInsertId()
	if err != nil {
		return 0, err
	}
	return r.tokenOf(number)
}

const (
	// trimEvery is how many tokens a process draws from a table until it removes the
	// rows that all have left there.
	trimEvery = 1024
	// longestTrim bounds that. If it fails, a later one does the work.
	longestTrim = time.Second
)

// A trimmer counts the tokens that a process has drawn. The numbers themselves do not
// tell: with auto_increment_increment=2 they are all odd. It begins anywhere, so
// that processes of which none draws many remove the rows, too, one of 1024.
type trimmer struct{ drawn atomic.Uint64 }

func (t *trimmer) begin() { t.drawn.Store(rand.Uint64N(trimEvery)) }

func (t *trimmer) due() bool { return t.drawn.Add(1)%trimEvery == 0 }

// draw draws a fencing token by a statement of its own, after the acquire
// statement, for the owner of the row alone. Whoever draws has the row, so the
// tokens of one key are drawn in the order of its holders: also outside of a
// transaction, because a lease that is over before the answer comes is none.
func (r *Repository) draw(ctx context.Context, db sqlx.ExecerContext, p params) (token int64, acquired bool, err error) {
	s := r.statements.draw
	result, err := db.ExecContext(ctx, s.text, s.args(p)...)
	if err != nil {
		return 0, false, err
	}
	// This count can be trusted on MySQL too: rows were inserted, not changed.
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return 0, false, err
	}
	token, err = r.insertedToken(result)
	return token, err == nil, err
}

// trimAfter keeps the table that tokens are drawn from small. The statement for that
// runs in the background.
func (r *Repository) trimAfter(token int64) {
	if r.statements.trim.text != "" && r.trimmer.due() {
		go r.trim(token)
	}
}

func (r *Repository) trim(token int64) {
	ctx, cancel := context.WithTimeout(context.Background(), longestTrim)
	defer cancel()
	// The lock is acquired: what is left in that table does not concern its holder.
	_, _ = execIn(ctx, r.db, r.statements.trim, params{token: token/handOffs - trimEvery})
}
