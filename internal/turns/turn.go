// Package turns has the order of arrival between processes: locks of sessions of the server, which grants them in that order. It
// reads and writes no row: a turn is a courtesy, and excludes no statement.
package turns

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

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/sqltext"
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
	// queuingOp is what an [dbcall.Error] of Take says was done.
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

// A Queue is where callers wait for turns: sessions of the server, or have them.
type Queue struct {
	settings Settings
	gate     *transaction.Gate         // counts the sessions, over all tables
	refused  error                     // why there are none, or nil
	told     atomic.Pointer[time.Time] // when OnFallback was last told something
	direct   atomic.Bool               // no pooler was found in front of the server
	checks   *dbcall.Limiter           // of that
	waits    waits
}

// Settings are what a queue needs.
type Settings struct {
	DB         *sql.DB // for the sessions that wait
	Shared     bool    // with all else that the table sends
	Texts      sqltext.Turns
	Server     dbcall.Server
	Topic      func(lockKey string) string // what tells the locks of all tables apart
	OnFallback func(error)                 // may be nil
	// Ask sends a query that returns a number, on another connection.
	Ask func(ctx context.Context, text string) (int, error)

	Nodes      bool // whether sessions may be on several nodes
	Statements bool // whether replicas run the statements themselves
}

// New returns a queue.
func New(s Settings) *Queue {
	q := &Queue{settings: s, checks: dbcall.NewLimiter(1), gate: transaction.GateOf(s.DB)}
	switch {
	case s.Texts.Begin == "":
		q.refused = errNoTurns
	case s.Nodes:
		q.refused = errNodes
	case s.Statements:
		q.refused = errStatements
	}
	return q
}

// asking and yielding are the limits of what is sent beside the waits.
var (
	asking   = dbcall.Policy{Op: "read", Races: dbcall.Always, Pinned: time.Second, Lockless: true, Answer: longAnswer}
	yielding = dbcall.Policy{Op: "read", Races: dbcall.Always, Pinned: time.Second, Lockless: true, Answer: shortAnswer}
)

const longAnswer, shortAnswer = 10 * time.Second, 5 * time.Second

// patience is how long what is no wait for a turn may take.
func (q *Queue) patience() time.Duration { return max(shortAnswer, q.settings.Server.TestPatience) }

// limit is how many sessions there may be now. Half of a pool that is shared is for all else. If that has no limit, there may
// be another one behind it, as pgxpool is, whose limit is not known: sessions that wait must leave connections for the holder.
func (q *Queue) limit() int {
	most := q.settings.DB.Stats().MaxOpenConnections
	switch {
	case most == 0 && q.settings.Shared:
		return unlimitedTurns
	case most == 0:
		return maxTurns
	case q.settings.Shared:
		most /= 2
	}
	return min(most, maxTurns)
}

// hasFree reports whether n connections of the pool can be had without waiting for others.
func (q *Queue) hasFree(n int) bool {
	s := q.settings.DB.Stats()
	return s.MaxOpenConnections == 0 || s.MaxOpenConnections-s.InUse >= n
}

// FallBack tells onFallback why a caller waits without its turn, once a minute at most.
func (q *Queue) FallBack(why error) {
	now, last := time.Now(), q.told.Load()
	if q.settings.OnFallback != nil && (last == nil || now.Sub(*last) > time.Minute) && q.told.CompareAndSwap(last, &now) {
		q.settings.OnFallback(fmt.Errorf("%w: %w", ErrOutOfTurn, why))
	}
}

// Refused returns why there can be no turns, whatever the pool allows, or nil.
func (q *Queue) Refused() error { return q.refused }

// Check returns an error if there can be no turns. It sends nothing.
func (q *Queue) Check() error {
	err := q.refused
	if err == nil && q.limit() == 0 {
		err = errOneConn
	}
	if err != nil {
		return &dbcall.Error{Kind: dbcall.WrongSession, Err: err}
	}
	return nil
}

// Number returns the number of a key.
func (q *Queue) Number(lockKey string) int64 {
	sum := sha256.Sum256([]byte(q.settings.Topic(lockKey)))
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // any number will do
}

// CheckSessions returns an error if a pooler gives one session of the server to two connections, until it is known that none does.
// Nothing is known, and it returns nil, while the pool has no second connection.
func (q *Queue) CheckSessions(ctx context.Context) error {
	if q.direct.Load() || q.settings.Texts.Session == "" || !q.hasFree(2) {
		return nil
	}
	if err := q.checks.Take(ctx); err != nil { // two at a time could each have one of two connections
		return q.settings.Server.Explain(ctx, asking.Op, err)
	}
	known, err := dbcall.CallInTime(ctx, q.settings.Server, asking, 0, func(ctx context.Context) (bool, error) {
		if q.direct.Load() {
			return true, nil
		}
		return checkDirect(ctx, q.settings.DB, q.settings.Texts.Session)
	}, nil)
	q.checks.Done(err)
	if known {
		q.direct.Store(true)
	}
	return err
}

// CheckDirect returns a [dbcall.WrongSession] if a pooler gives one session of the server to two connections, as
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
		return false, &dbcall.Error{Kind: dbcall.WrongSession, Err: errPooledTurns}
	default:
		return err == nil, err
	}
}

// poolerTries is how often two connections are compared. Other clients of a pooler may come in between.
const poolerTries = 5

// SharesSessions reports whether two connections that are open at the same time are served by one session of the server, or
// one by several, as behind a pooler that gives a session to another client after each transaction. question asks for
// the number of the session, as [sqltext.Turns.Session] does. It does not wait for long for its second connection, without which it returns an error.
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
	queue *Queue
	conn  *sql.Conn
	key   int64
	kept  time.Time

	session int64 // the server's number of the session, where it counts
}

// text returns a text with the number of the key. It has no arguments, so no driver prepares it.
func (turn *Turn) text(of string) string {
	return strings.ReplaceAll(of, ":turn", strconv.FormatInt(turn.key, 10))
}

// Take waits for the turn of a key. It writes nothing. When ctx ends, it returns a moment later, and the session that
// waits is closed.
//
// The server ends each wait after a minute, and the place in the queue is lost: on PostgreSQL a statement that waits keeps
// VACUUM from removing rows. So it is, a second later, when the server waits for such a statement. Then Take
// waits anew. If there can be no turn now, it returns an error, which OnFallback is told once in a while. It is not
// told a [dbcall.NoAnswer], which holds for all statements, or a [dbcall.WrongSession].
func (q *Queue) Take(ctx context.Context, lockKey string) (*Turn, error) {
	for tries := 1; ; tries++ {
		turn, err := q.take(ctx, lockKey)
		if err == nil {
			return turn, nil
		}
		explained := q.settings.Server.Explain(ctx, queuingOp, err)
		switch {
		case bounded.Ended(ctx) != nil, dbcall.Is(explained, dbcall.WrongSession):
			return nil, explained
		case errors.Is(err, errTurnOver):
			tries = 0 // without a pause: those that came later are to come later again
		case tries < maxTurnTries && !errors.Is(err, errNoPlace) && !errors.Is(err, errPoolInUse):
			bounded.Sleep(ctx, shortestTurnPause+jitter.N(longestTurnPause-shortestTurnPause)) // the next try sees the end of ctx
		default:
			if !dbcall.Is(explained, dbcall.NoAnswer) {
				q.FallBack(err)
			}
			return nil, explained
		}
	}
}

// take waits in one session, for not much longer than the server lets it.
func (q *Queue) take(ctx context.Context, lockKey string) (*Turn, error) {
	var turn *Turn
	err := q.CheckSessions(ctx)
	if err == nil {
		connect := func(ctx context.Context) (*Turn, error) { return q.connectTurn(ctx, lockKey) }
		turn, err = dbcall.Await(ctx, q.patience(), connect, func(late *Turn, _ error) {
			if late != nil {
				late.giveBack(true)
			}
		})
	}
	if dbcall.Is(q.settings.Server.Explain(ctx, queuingOp, err), dbcall.NoAnswer) && !q.hasFree(1) {
		return nil, errPoolInUse
	}
	if err != nil {
		return nil, err
	}
	return dbcall.Await(ctx, turnWait+max(longAnswer, q.settings.Server.TestPatience), turn.wait, func(late *Turn, _ error) {
		if late != nil {
			late.Leave(ctx, nil)
		}
	})
}

// connectTurn returns a session that can wait for the turn of a key.
func (q *Queue) connectTurn(ctx context.Context, lockKey string) (*Turn, error) {
	if !q.gate.Keep(1, q.limit()) {
		return nil, errNoPlace
	}
	conn, err := q.settings.DB.Conn(ctx)
	if err != nil {
		q.gate.Keep(-1, 0)
		return nil, err
	}
	turn := &Turn{queue: q, conn: conn, key: q.Number(lockKey)}
	if q.settings.Texts.Session != "" { // a connection of the pool may have died silently
		err = conn.QueryRowContext(ctx, q.settings.Texts.Session).Scan(&turn.session)
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
	began, had, texts := time.Now(), 1, turn.queue.settings.Texts
	least := shortestTurnWait
	if texts.Yield != "" {
		least = yieldEvery
		defer turn.queue.yields(turn.session)() //nolint:contextcheck // it asks for all waits, not for this one
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
	case !turn.queue.settings.Server.IsBlocked(err):
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

// waits are the sessions that wait for turns now.
type waits struct {
	mu    sync.Mutex
	since map[int64]time.Time
	end   context.CancelFunc // of what looks after them
}

// yields ends the wait of a session when the server waits for its snapshot, until the returned function is
// called. CREATE INDEX CONCURRENTLY would wait until the end of the minute.
func (q *Queue) yields(session int64) (done func()) {
	w := &q.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.since) == 0 {
		w.since = make(map[int64]time.Time)
		ctx, cancel := context.WithCancel(context.Background())
		w.end = cancel
		go q.yieldAgain(ctx)
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
func (q *Queue) yieldAgain(ctx context.Context) {
	for bounded.Sleep(ctx, yieldEvery) {
		if sessions := q.waits.long(); sessions != "" {
			yield := strings.ReplaceAll(q.settings.Texts.Yield, "{sessions}", sessions)
			_, _ = dbcall.CallInTime(ctx, q.settings.Server, yielding, 0, func(ctx context.Context) (int, error) { // otherwise the waits end later
				return q.settings.Ask(ctx, yield)
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

// Keep tells the server that the turn is in use. It returns false if the turn is lost.
func (turn *Turn) Keep(ctx context.Context) bool {
	if time.Since(turn.kept) < KeepTurnEvery {
		return true
	}
	turn.kept = time.Now()
	_, err := dbcall.Await(ctx, turn.queue.patience(), func(ctx context.Context) (struct{}, error) { return struct{}{}, turn.conn.PingContext(ctx) }, nil)
	return err == nil
}

// Leave gives the turn up, whatever has become of ctx: the next one in the queue has it. left, unless it is nil, is closed when that is done, which
// is before the session goes back to its pool.
func (turn *Turn) Leave(ctx context.Context, left chan<- struct{}) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	_, _ = bounded.Do(ctx, bounded.Grace, func() (struct{}, error) {
		texts := turn.queue.settings.Texts
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
	turn.queue.gate.Keep(-1, 0)
}
