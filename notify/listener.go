package notify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

const (
	// longestConnect bounds an attempt to connect.
	longestConnect = 10 * time.Second
	// Pauses between attempts to connect begin with shortestPause and double up to
	// longestPause.
	shortestPause = 100 * time.Millisecond
	longestPause  = 10 * time.Second
)

// A patience says how long nothing need come before the server is asked whether it is still
// there, and how long it may take to answer. A connection that a router has forgotten does
// not say so.
type patience struct{ quiet, answer time.Duration }

var usual = patience{quiet: 30 * time.Second, answer: 5 * time.Second}

// ErrPooled is returned by [Listen], and told to [Options.OnConnection], when something
// between us and the server shares connections out, as PgBouncer does: notifications would
// be lost without a word. Give the listener a DSN that leads to the server itself.
var ErrPooled = errors.New("notify: a pooler stands between the listener and the server")

// Options are the settings of a [Listener]. A zero field means its default.
type Options struct {
	// OnConnection, if set, is told what becomes of the connection: the error that
	// ended it, that of each failed attempt to have another one, and nil when it is
	// there again. Meanwhile waiters poll. It is called by the goroutine that listens,
	// which waits for it.
	OnConnection func(err error)
}

// A Listener is a connection that listens for releases, and the [sqllock.Waker] of any
// number of registries, of any region and prefix, in that database. One for a process is
// enough.
//
// A connection that is lost is made anew, with pauses of up to 10 s; then all waiters are
// woken once, since what was released meanwhile was not heard. All methods are safe for
// concurrent use.
type Listener struct {
	config   *pgconn.Config
	told     func(error)
	patience patience
	bells    bells
	cancel   context.CancelFunc
	done     chan struct{}
}

var _ sqllock.Waker = (*Listener)(nil)

// Listen connects to the server that dsn leads to and listens until Close. dsn is a URL or
// a list of keywords and values, as lib/pq and pgx understand them. The connection must
// lead to the server itself, to one that accepts writes: not through a pooler
// ([ErrPooled]), nor to a replica. opts may be nil.
//
// ctx, and 10 s, bound this first attempt to connect and nothing else. If it fails, the error
// is a [sqllock.ErrDatabase] and nothing goes on; a dsn that is not understood gives a
// [sqllock.ErrInvalid].
func Listen(ctx context.Context, dsn string, opts *Options) (*Listener, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	return listen(ctx, config, opts, usual)
}

func listen(ctx context.Context, config *pgconn.Config, opts *Options, p patience) (*Listener, error) {
	l := &Listener{config: config, told: func(error) {}, patience: p, done: make(chan struct{})}
	if opts != nil && opts.OnConnection != nil {
		l.told = opts.OnConnection
	}
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { l.bells.ring(n.Payload) }
	conn, err := l.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: listen: %w", sqllock.ErrDatabase, err)
	}
	var running context.Context
	running, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go l.run(running, conn)
	return l, nil
}

// Watch is the method of [sqllock.Waker]. After Close nothing wakes any more.
func (l *Listener) Watch(topic string) (wake <-chan struct{}, stop func()) {
	bell := l.bells.hang(topic)
	return bell, func() { l.bells.remove(topic, bell) }
}

// Close ends the connection, and returns when it has ended, which takes no more than a second.
// Registries that have the listener poll from then on. Close may be called again. Its
// error is nil always. OnConnection must not call it.
func (l *Listener) Close() error {
	l.cancel()
	<-l.done
	return nil
}

// run listens over conn, and then over others, until ctx ends.
func (l *Listener) run(ctx context.Context, conn *pgconn.PgConn) {
	defer close(l.done)
	for conn != nil {
		err := l.receive(ctx, conn)
		hangUp(ctx, conn)
		if ctx.Err() != nil {
			return
		}
		l.told(err)
		conn = l.reconnect(ctx)
	}
}

// receive rings until the connection breaks or ctx ends, and returns why.
func (l *Listener) receive(ctx context.Context, conn *pgconn.PgConn) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, l.patience.quiet)
		err := conn.WaitForNotification(waiting) // OnNotification rings
		passed := waiting.Err() != nil
		cancel()
		if passed && ctx.Err() == nil {
			err = l.ask(ctx, conn)
		}
		if err != nil {
			return err
		}
	}
}

// ask finds out whether the server is still there.
func (l *Listener) ask(ctx context.Context, conn *pgconn.PgConn) error {
	ctx, cancel := context.WithTimeout(ctx, l.patience.answer)
	defer cancel()
	_, err := query(ctx, conn, "SELECT 1")
	return err
}

// reconnect returns a connection that listens, or nil once ctx has ended.
func (l *Listener) reconnect(ctx context.Context) *pgconn.PgConn {
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		select {
		case <-time.After(pause/2 + rand.N(pause/2)): // not all processes at once
		case <-ctx.Done():
			return nil
		}
		conn, err := l.connect(ctx)
		if ctx.Err() != nil {
			if err == nil {
				hangUp(ctx, conn)
			}
			return nil
		}
		if err == nil {
			l.bells.ringAll()
		}
		l.told(err)
		if err == nil {
			return conn
		}
	}
}

// connect returns a connection that listens.
func (l *Listener) connect(ctx context.Context) (*pgconn.PgConn, error) {
	limited, cancel := context.WithTimeout(ctx, longestConnect)
	defer cancel()
	conn, err := pgconn.ConnectConfig(limited, l.config)
	if err != nil {
		return nil, err
	}
	if err := subscribe(limited, conn); err != nil {
		hangUp(ctx, conn)
		return nil, err
	}
	return conn, nil
}

// subscribe listens, and sees to it that the server at the other end is the one that
// greeted us: a pooler makes up the number of the process that it says hello with.
func subscribe(ctx context.Context, conn *pgconn.PgConn) error {
	pid, err := query(ctx, conn, "LISTEN "+dialect.Channel+"; SELECT pg_backend_pid()")
	if err == nil && pid != strconv.FormatUint(uint64(conn.PID()), 10) {
		err = ErrPooled
	}
	return err
}
