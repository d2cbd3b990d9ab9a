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
	"github.com/sqllock/sqllock/internal/transaction"
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

	errNoTurns    = errors.New("the option Fair needs PostgreSQL, MySQL or MariaDB")
	errNodes      = errors.New("the option Fair needs a single server: sessions on several nodes of a cluster do not queue together")
	errStatements = errors.New("the option Fair needs binlog_format=MIXED or ROW: with STATEMENT replicas would decide for themselves whether a turn is free, " +
		"and write rows that this server does not have")
	errOneConn = errors.New("the option Fair needs a second connection: a caller that waits for its turn keeps one, and the pool is limited to one: " +
		"raise SetMaxOpenConns, or set RepositoryOptions.Turns")
	errPooledTurns = errors.New("the option Fair needs sessions of the server itself: callers that wait for their turns would occupy those of the transaction pooler: " +
		"give Open a DSN of the server, or set RepositoryOptions.Turns to a pool that connects to it directly")
	errNoPlace = errors.New("no session left to queue in (the limit is 16, half of the pool's limit, or 2 without one): " +
		"RepositoryOptions.Turns can have more")
	errPoolInUse = errors.New("all connections of the pool are in use")
	errNoWait    = errors.New("the server does not let a session wait for its turn")
	errTurnOver  = errors.New("the server has ended a long wait for the turn")
	errUnpaired  = errors.New("the pool has no second connection")
)

// turns are the sessions in which callers of this table wait for turns, or have them.
type turns struct {
	pool       *sql.DB
	gate       *transaction.Gate // counts the sessions, over all tables
	shared     bool              // with all else that the table sends
	texts      dialect.Turns
	onFallback func(error)               // may be nil
	refused    error                     // why there are none, or nil
	told       atomic.Pointer[time.Time] // when onFallback was last told something
	direct     atomic.Bool               // no pooler was found in front of the server
	checks     *limiter                  // of that
	waits      waits
}

func (t *Table) openTurns(config Config) {
	u := &t.turns
	u.onFallback, u.texts, u.checks = config.OnFallback, t.dialect.Turns(t.names), newLimiter(1)
	u.pool, u.shared = config.Turns, config.Turns == nil
	if u.shared {
		u.pool = config.DB
	}
	u.gate = transaction.GateOf(u.pool)
	switch {
	case u.texts.Begin == "":
		u.refused = errNoTurns
	case t.home.Galera, t.home.RefusesSerializable():
		u.refused = errNodes
	case t.home.replicatesStatements():
		u.refused = errStatements
	}
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
		return &Error{Kind: WrongSession, Err: err}
	}
	return nil
}

// turnOf returns the number of a key.
func (t *Table) turnOf(lockKey string) int64 {
	sum := sha256.Sum256([]byte(t.Topic(lockKey)))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any number will do
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
	known, err := callAlone(ctx, t, reading, 0, func(ctx context.Context) (bool, error) {
		if u.direct.Load() {
			return true, nil
		}
		return checkDirect(ctx, u.pool, u.texts.Session)
	}, nil)
	u.checks.cancel(err)
	if known {
		u.direct.Store(true)
	}
	return err
}

// CheckDirect returns a [WrongSession] if a pooler gives one session of the server to two connections, as
// [SharesSessions] finds out. If there is no second connection, nothing is known, and it returns nil.
func CheckDirect(ctx context.Context, db *sql.DB, question string) error {
	_, err := checkDirect(ctx, db, question)
	return err
}

// checkDirect is CheckDirect. known is true if there is no such pooler.
func checkDirect(ctx context.Context, db *sql.DB, question string) (known bool, err error) {
	shared, err := SharesSessions(ctx, db, question)
	switch {
	case errors.Is(err, errUnpaired):
		return false, nil
	case err == nil && shared:
		return false, &Error{Kind: WrongSession, Err: errPooledTurns}
	default:
		return err == nil, err
	}
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

	session int64 // the server's number of the session, where it counts
}

// text returns a text with the number of the key. It has no arguments, so no driver prepares it.
func (turn *Turn) text(of string) string {
	return strings.ReplaceAll(of, ":turn", strconv.FormatInt(turn.key, 10))
}

// TakeTurn waits for the turn of a key. It writes nothing. When ctx ends, it returns a moment later, and the session that
// waits is closed.
//
// The server ends each wait after a minute, and the place in the queue is lost: on PostgreSQL a statement that waits keeps
// VACUUM from removing rows. So it is, a second later, when the server waits for such a statement. Then TakeTurn
// waits anew. If there can be no turn now, it returns an error, which OnFallback is told once in a while. It is not
// told a [NoAnswer], which holds for all statements, or a [WrongSession].
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
	if !u.gate.Keep(1, u.limit()) {
		return nil, errNoPlace
	}
	conn, err := u.pool.Conn(ctx)
	if err != nil {
		u.gate.Keep(-1, 0)
		return nil, err
	}
	turn := &Turn{table: t, conn: conn, key: t.turnOf(lockKey)}
	if u.texts.Session != "" { // a connection of the pool may have died silently
		err = conn.QueryRowContext(ctx, u.texts.Session).Scan(&turn.session)
	} else {
		err = conn.PingContext(ctx)
	}
	if err != nil {
		turn.giveBack(false)
		return nil, err
	}
	return turn, nil
}

// wait returns the turn when it has it. After an error the session is given back.
func (turn *Turn) wait(ctx context.Context) (*Turn, error) {
	began, had, texts := time.Now(), 1, turn.table.turns.texts
	least := shortestTurnWait
	if texts.Yield != "" {
		least = yieldEvery
		defer turn.table.yields(turn.session)() //nolint:contextcheck // it asks for all waits, not for this one
	}
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
	if time.Since(began) >= least {
		err = errTurnOver
	}
	return nil, err
}

// yieldEvery is how often sqllock looks whether the server waits for sessions that wait for
// turns, and how long these wait at least.
const yieldEvery = time.Second

// waits are the sessions of a table that wait for turns now.
type waits struct {
	mu    sync.Mutex
	since map[int64]time.Time
	end   context.CancelFunc // of what looks after them
}

// yields has the wait of a session end when the server waits for its snapshot, until the returned function is
// called. CREATE INDEX CONCURRENTLY would wait until the end of the minute.
func (t *Table) yields(session int64) (done func()) {
	w := &t.turns.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.since) == 0 {
		w.since = make(map[int64]time.Time)
		ctx, cancel := context.WithCancel(context.Background())
		w.end = cancel
		go t.yieldAgain(ctx)
	}
	w.since[session] = time.Now()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.since, session); len(w.since) == 0 {
			w.end()
		}
	}
}

// yieldAgain looks again and again, until ctx ends.
func (t *Table) yieldAgain(ctx context.Context) {
	for bounded.Sleep(ctx, yieldEvery) {
		if sessions := t.turns.waits.long(); sessions != "" {
			yield := statement{text: strings.ReplaceAll(t.turns.texts.Yield, "{sessions}", sessions)}
			_, _ = callAlone(ctx, t, polling, 0, func(ctx context.Context) (int, error) { // otherwise the waits end later
				return t.count(ctx, yield, values{})
			}, nil)
		}
	}
}

// long returns the sessions that have waited for yieldEvery, separated by commas.
func (w *waits) long() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var sessions []string
	for session, since := range w.since {
		if time.Since(since) >= yieldEvery {
			sessions = append(sessions, strconv.FormatInt(session, 10))
		}
	}
	return strings.Join(sessions, ", ")
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
	turn.table.turns.gate.Keep(-1, 0)
}
