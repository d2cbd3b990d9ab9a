package locktable

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
)

const (
	// maxTurns is how many sessions of a pool wait for turns, or have them, at a time.
	maxTurns = 16
	// unlimitedTurns is the same for a pool without a limit that is the repository's, too.
	unlimitedTurns = 2
	// KeepTurnEvery is how often a turn is kept at least. The server ends the session of one after five seconds.
	KeepTurnEvery = time.Second
	// leaveTimeout is how long the answers to what ends a turn may take.
	leaveTimeout = time.Second
	// turnWait is how long the server lets a session wait for its turn.
	turnWait = time.Minute
	// maxTurnTries is how often a turn is asked for. A try does not count if the server has let it wait for shortestTurnWait,
	// and has then ended it for taking too long.
	maxTurnTries     = 3
	shortestTurnWait = 10 * time.Second
	// shortestTurnPause and longestTurnPause are the limits of the random pause after a try that counts.
	shortestTurnPause, longestTurnPause = 10 * time.Millisecond, 50 * time.Millisecond
	// pairTimeout is how long SharesSessions waits for its second connection.
	pairTimeout = time.Second
	// queuingOp is what an [Error] of TakeTurn says was done.
	queuingOp = "queue for"
)

var (
	// ErrOutOfTurn is told to OnFallback: a caller waits like one of a lock that is not fair.
	ErrOutOfTurn = errors.New("a caller waits for a lock without its turn")

	errNoTurns = errors.New("the order of arrival between processes needs sessions that queue on a server: those of PostgreSQL, MySQL or MariaDB")
	errNodes   = errors.New("the order of arrival between processes needs one server: sessions on several nodes of a cluster do not queue together")
	errOneConn = errors.New("the order of arrival between processes: a caller that waits for its turn keeps a connection, and the pool has only one: " +
		"give it more by SetMaxOpenConns, or set RepositoryOptions.Turns")
	errPooledTurns = errors.New("the order of arrival between processes: a pooler in front of the server gives its few sessions out for a transaction each, " +
		"and callers that wait for their turns would keep them from all others: give Open a DSN of the server itself, or NewRepository a pool of such sessions " +
		"as RepositoryOptions.Turns")
	errNoPlace = errors.New("all sessions that may wait for turns do: 16, half of the pool's limit, or 2 without a limit; " +
		"RepositoryOptions.Turns may have more")
	errPoolInUse = errors.New("all connections of the pool are in use")
	errNoWait    = errors.New("the server does not let a session wait for its turn")
	errTurnOver  = errors.New("the server has ended a long wait for the turn")
	errUnpaired  = errors.New("the pool has no second connection")
)

// turnSessions counts the sessions that wait for turns, or have them, of each pool: several tables over one leave connections
// to each other.
var turnSessions = struct {
	mu sync.Mutex
	of map[*sql.DB]int
}{of: make(map[*sql.DB]int)}

// turns are the sessions in which callers of this table wait for turns, or have them.
type turns struct {
	pool       *sql.DB
	shared     bool // with all else that the table sends
	texts      dialect.Turns
	onFallback func(error)               // may be nil
	refused    error                     // why there are none, or nil
	told       atomic.Pointer[time.Time] // when onFallback was last told something
	direct     atomic.Bool               // no pooler was found in front of the server
	checks     *limiter                  // of that
	isFree     statement
}

func (t *Table) openTurns(config Config) (err error) {
	u := &t.turns
	u.onFallback, u.texts, u.checks = config.OnFallback, t.dialect.Turns(t.names), newLimiter(1)
	u.pool, u.shared = config.Turns, config.Turns == nil
	if u.shared {
		u.pool = config.DB
	}
	switch {
	case u.texts.Begin == "":
		u.refused = errNoTurns
	case t.home.Galera, t.home.RefusesSerializable():
		u.refused = errNodes
	}
	u.isFree, err = compile(u.texts.IsFree, t.dialect, t.region)
	return err
}

// limit is how many sessions there may be now. Half of a pool that is shared is for all else. If that has no limit, there may
// be another one behind it, as pgxpool is, whose limit is not known: sessions that wait must leave connections for the holder.
func (u *turns) limit() int {
	most := u.pool.Stats().MaxOpenConnections
	switch {
	case most == 0 && u.shared:
		return unlimitedTurns
	case most == 0:
		return maxTurns
	case u.shared:
		most /= 2
	}
	return min(most, maxTurns)
}

// add counts n sessions more, if there may be so many.
func (u *turns) add(n int) bool {
	limit := u.limit()
	turnSessions.mu.Lock()
	defer turnSessions.mu.Unlock()
	switch now := turnSessions.of[u.pool] + n; {
	case n > 0 && now > limit:
		return false
	case now == 0:
		delete(turnSessions.of, u.pool) // or the pool would stay in memory
	default:
		turnSessions.of[u.pool] = now
	}
	return true
}

// hasFree reports whether n connections of the pool can be had without waiting for others.
func (u *turns) hasFree(n int) bool {
	s := u.pool.Stats()
	return s.MaxOpenConnections == 0 || s.MaxOpenConnections-s.InUse >= n
}

// fallBack tells onFallback why a caller waits without its turn, once a minute at most.
func (u *turns) fallBack(why error) {
	now, last := time.Now(), u.told.Load()
	if u.onFallback != nil && (last == nil || now.Sub(*last) > time.Minute) && u.told.CompareAndSwap(last, &now) {
		u.onFallback(fmt.Errorf("%w: %w", ErrOutOfTurn, why))
	}
}

// CheckTurns returns an error if there can be no turns. It sends nothing.
func (t *Table) CheckTurns() error {
	err := t.turns.refused
	if err == nil && t.turns.limit() == 0 {
		err = errOneConn
	}
	if err != nil {
		return &Error{"", WrongSession, err}
	}
	return nil
}

// turnOf returns the number of a key.
func (t *Table) turnOf(lockKey string) int64 {
	sum := sha256.Sum256([]byte(t.Topic(lockKey)))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any number will do
}

// TurnIsFree reports whether no session has the turn of a key. Then none waits for it, either.
func (t *Table) TurnIsFree(ctx context.Context, lockKey string) (bool, error) {
	if err := t.checkDirect(ctx); err != nil {
		return false, err
	}
	if t.reads != nil {
		if err := t.reads.take(ctx); err != nil {
			return false, t.errors.explain(ctx, reading.op, err)
		}
	}
	n, err := callAlone(ctx, t, reading, 0, func(ctx context.Context) (int, error) {
		return t.count(ctx, t.turns.isFree, values{turn: t.turnOf(lockKey)})
	}, nil)
	if t.reads != nil {
		t.reads.cancel(err)
	}
	return n > 0, err
}

// checkDirect returns an error if a pooler gives one session of the server to two connections, until it is known that none does.
// Nothing is known, and it returns nil, while the pool has no second connection.
func (t *Table) checkDirect(ctx context.Context) error {
	u := &t.turns
	if u.direct.Load() || u.texts.Session == "" || !u.hasFree(2) {
		return nil
	}
	if err := u.checks.take(ctx); err != nil { // two at a time could each have one of two connections
		return t.errors.explain(ctx, reading.op, err)
	}
	shared, err := callAlone(ctx, t, reading, 0, func(ctx context.Context) (bool, error) {
		if u.direct.Load() {
			return false, nil
		}
		return SharesSessions(ctx, u.pool, u.texts.Session)
	}, nil)
	u.checks.cancel(err)
	switch {
	case errors.Is(err, errUnpaired):
		return nil
	case err == nil && shared:
		return &Error{"", WrongSession, errPooledTurns}
	case err == nil:
		u.direct.Store(true)
	}
	return err
}

// poolerTries is how often two connections are compared. Other clients of a pooler may come in between.
const poolerTries = 5

// SharesSessions reports whether two connections that are open at the same time are served by one session of the server, or
// one by several, as behind a pooler that gives a session to another client after each transaction. question is
// [dialect.Turns.Session]. It does not wait for long for its second connection, without which it returns an error.
func SharesSessions(ctx context.Context, db *sql.DB, question string) (bool, error) {
	first, err := db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = first.Close() }() // goes back to the pool
	soon, cancel := context.WithTimeout(ctx, pairTimeout)
	defer cancel()
	second, err := db.Conn(soon)
	switch {
	case err != nil && bounded.Ended(soon) != nil && bounded.Ended(ctx) == nil:
		return false, errUnpaired
	case err != nil:
		return false, err
	}
	defer func() { _ = second.Close() }()
	var before [2]int64
	for n := range poolerTries {
		var sessions [2]int64
		for i, conn := range []*sql.Conn{first, second} {
			if err := conn.QueryRowContext(ctx, question).Scan(&sessions[i]); err != nil {
				return false, err
			}
		}
		if sessions[0] == sessions[1] || n > 0 && sessions != before {
			return true, nil
		}
		before = sessions
	}
	return false, nil
}

// A Turn is the place at the head of the queue for a key, over all processes. Its caller acquires the row as any other
// does: the turn is a courtesy, and excludes no statement. It is used by one goroutine at a time.
type Turn struct {
	table *Table
	conn  *sql.Conn
	key   int64
	kept  time.Time
}

// text returns a text with the number of the key. It has no arguments, so no driver prepares it.
func (turn *Turn) text(of string) string {
	return strings.ReplaceAll(of, ":turn", strconv.FormatInt(turn.key, 10))
}

// TakeTurn waits for the turn of a key. It writes nothing. When ctx ends, it returns a moment later, and the session that
// waits is closed.
//
// The server ends each wait after a minute, and the place in the queue is lost: on PostgreSQL a statement that waits keeps
// VACUUM from removing rows. Then TakeTurn waits anew. If there can be no turn now, it returns an error, which OnFallback
// is told once in a while. It is not told a [NoAnswer], which holds for all statements, or a [WrongSession].
func (t *Table) TakeTurn(ctx context.Context, lockKey string) (*Turn, error) {
	for tries := 1; ; tries++ {
		turn, err := t.takeTurn(ctx, lockKey)
		if err == nil {
			return turn, nil
		}
		explained := t.errors.explain(ctx, queuingOp, err)
		switch {
		case bounded.Ended(ctx) != nil, Is(explained, WrongSession):
			return nil, explained
		case errors.Is(err, errTurnOver):
			tries = 0 // without a pause: those that came later are to come later again
		case tries < maxTurnTries && !errors.Is(err, errNoPlace) && !errors.Is(err, errPoolInUse):
			bounded.Sleep(ctx, shortestTurnPause+jitter.N(longestTurnPause-shortestTurnPause)) // the next try sees the end of ctx
		default:
			if !Is(explained, NoAnswer) {
				t.turns.fallBack(err)
			}
			return nil, explained
		}
	}
}

// takeTurn waits in one session, for not much longer than the server lets it.
func (t *Table) takeTurn(ctx context.Context, lockKey string) (*Turn, error) {
	var turn *Turn
	err := t.checkDirect(ctx)
	if err == nil {
		connect := func(ctx context.Context) (*Turn, error) { return t.connectTurn(ctx, lockKey) }
		turn, err = await(ctx, t.Patience(), connect, func(late *Turn, _ error) {
			if late != nil {
				late.giveBack(true)
			}
		})
	}
	if Is(t.errors.explain(ctx, queuingOp, err), NoAnswer) && !t.turns.hasFree(1) {
		return nil, errPoolInUse
	}
	if err != nil {
		return nil, err
	}
	return await(ctx, turnWait+max(answerTimeout, t.patience), turn.wait, func(late *Turn, _ error) {
		if late != nil {
			late.Leave(ctx, nil)
		}
	})
}

// connectTurn returns a session that can wait for the turn of a key.
func (t *Table) connectTurn(ctx context.Context, lockKey string) (*Turn, error) {
	u := &t.turns
	if !u.add(1) {
		return nil, errNoPlace
	}
	conn, err := u.pool.Conn(ctx)
	if err != nil {
		u.add(-1)
		return nil, err
	}
	turn := &Turn{table: t, conn: conn, key: t.turnOf(lockKey)}
	if err := conn.PingContext(ctx); err != nil { // a connection of the pool may have died silently
		turn.giveBack(false)
		return nil, err
	}
	return turn, nil
}

// wait returns the turn when it has it. After an error the session is given back.
func (turn *Turn) wait(ctx context.Context) (*Turn, error) {
	began, had, texts := time.Now(), 1, turn.table.turns.texts
	_, err := turn.conn.ExecContext(ctx, turn.text(texts.Begin))
	if err == nil && texts.Take != "" {
		err = turn.conn.QueryRowContext(ctx, turn.text(texts.Take)).Scan(&had)
	}
	switch {
	case err == nil && had == 1:
		turn.kept = time.Now()
		return turn, nil
	case err == nil:
		err = errNoWait
	case !turn.table.errors.isBlocked(err):
		turn.giveBack(false)
		return nil, err
	}
	turn.Leave(ctx, nil) // the session goes on
	if time.Since(began) >= shortestTurnWait {
		err = errTurnOver
	}
	return nil, err
}

// Keep has the server know that the turn is in use. It returns false if the turn is lost.
func (turn *Turn) Keep(ctx context.Context) bool {
	if time.Since(turn.kept) < KeepTurnEvery {
		return true
	}
	turn.kept = time.Now()
	_, err := await(ctx, turn.table.Patience(), func(ctx context.Context) (struct{}, error) { return struct{}{}, turn.conn.PingContext(ctx) }, nil)
	return err == nil
}

// Leave gives the turn up, whatever has become of ctx: the next one in the queue has it. left, unless it is nil, is closed when that is done, which
// is before the session goes back to its pool.
func (turn *Turn) Leave(ctx context.Context, left chan<- struct{}) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	_, _ = bounded.Do(ctx, bounded.Grace, func() (struct{}, error) {
		texts := turn.table.turns.texts
		_, err := turn.conn.ExecContext(ctx, turn.text(texts.End))
		if left != nil {
			close(left)
		}
		if err == nil && texts.After != "" {
			_, err = turn.conn.ExecContext(ctx, texts.After)
		}
		turn.giveBack(err == nil)
		return struct{}{}, err
	}, nil)
}

// giveBack gives the connection back to the pool, or closes it.
func (turn *Turn) giveBack(usable bool) {
	if !usable {
		_ = turn.conn.Raw(func(any) error { return driver.ErrBadConn }) // has the pool close it
	}
	_ = turn.conn.Close() // there is nothing to be done about an error
	turn.table.turns.add(-1)
}
