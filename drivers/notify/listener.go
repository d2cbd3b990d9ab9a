package notify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

const (
	// connectTimeout limits an attempt to connect.
	connectTimeout = 10 * time.Second
	// The pauses between attempts to connect start at minPause and double up to maxPause.
	minPause = 100 * time.Millisecond
	maxPause = 10 * time.Second
)

// timeouts detect a connection that was cut without an error, for example by a router. If the server sends nothing
// for idle, the listener sends it a query, which it must answer within reply.
type timeouts struct{ idle, reply time.Duration }

var defaultTimeouts = timeouts{idle: 30 * time.Second, reply: 5 * time.Second}

// ErrPooled is returned by [Listen], and passed to [Options.OnConnection], if the DSN leads to a connection pooler
// such as PgBouncer. In transaction mode notifications would be lost without an error. Use a
// DSN that leads to the server itself.
var ErrPooled = errors.New("notify: the listener is connected through a connection pooler")

// Options are the settings of a [Listener]. A zero field means its default.
type Options struct {
	// OnConnection, if not nil, is called with the error that ended the connection, with the error of each failed
	// attempt to reconnect, and with nil when the listener has reconnected. Meanwhile waiters poll. The listener's
	// goroutine calls it and waits until it returns.
	OnConnection func(err error)
	// BeforeConnect, if not nil, is called with a copy of the configuration before each attempt to connect, as for a
	// password that does not last. If it returns an error, the attempt has failed.
	BeforeConnect func(ctx context.Context, config *pgconn.Config) error
}

// A Listener is a connection that listens for releases. It is the [sqllock.Waker] of any number of registries in that
// database, with any regions and prefixes. One listener is enough for a process.
//
// If the connection is lost, the listener reconnects, with pauses of up to 10 s. Then it wakes up all waiters once,
// since it may have missed a release. All methods are safe for concurrent use.
type Listener struct {
	config        *pgconn.Config
	beforeConnect func(context.Context, *pgconn.Config) error // or nil
	onConnection  func(error)
	timeouts      timeouts
	subscriptions subscriptions
	cancel        context.CancelFunc
	done          chan struct{}
}

var _ sqllock.Waker = (*Listener)(nil)

// Listen connects to the server of dsn and listens until Close. opts may be nil.
//
//   - dsn is a URL or a list of keywords and values, as for lib/pq and pgx. If it cannot be
//     parsed, Listen returns a [sqllock.ErrInvalid].
//   - The connection must lead to the server directly, not to a replica. Through a pooler, in
//     whichever mode, Listen returns an [ErrPooled], which is a [sqllock.ErrInvalid].
//   - ctx limits only this first attempt to connect, which takes at most 10 s. If it fails,
//     Listen returns a [sqllock.ErrDatabase], and there is no listener to close.
func Listen(ctx context.Context, dsn string, opts *Options) (*Listener, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	return listen(ctx, config, opts, defaultTimeouts)
}

// ListenConfig is [Listen] with a configuration that pgconn.ParseConfig, pgx.ParseConfig or pgxpool.ParseConfig has made,
// in place of a DSN. It is copied.
func ListenConfig(ctx context.Context, config *pgconn.Config, opts *Options) (*Listener, error) {
	if config == nil || config.RuntimeParams == nil || config.DialFunc == nil { // pgconn would panic
		return nil, fmt.Errorf("%w: listen: the configuration is not one of pgconn.ParseConfig", sqllock.ErrInvalid)
	}
	config = config.Copy()
	complete(config)
	return listen(ctx, config, opts, defaultTimeouts)
}

func listen(ctx context.Context, config *pgconn.Config, opts *Options, t timeouts) (*Listener, error) {
	l := &Listener{config: config, onConnection: func(error) {}, timeouts: t, done: make(chan struct{})}
	if opts != nil {
		l.beforeConnect = opts.BeforeConnect
	}
	if opts != nil && opts.OnConnection != nil {
		l.onConnection = opts.OnConnection
	}
	conn, err := l.connect(ctx)
	if errors.Is(err, ErrPooled) {
		return nil, fmt.Errorf("%w: listen: %w", sqllock.ErrInvalid, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: listen: %w", sqllock.ErrDatabase, err)
	}
	var running context.Context
	running, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go l.run(running, conn)
	return l, nil
}

// Watch implements [sqllock.Waker]. After Close, wake receives nothing more.
func (l *Listener) Watch(topic string) (wake <-chan struct{}, stop func()) {
	woken := l.subscriptions.subscribe(topic)
	return woken, func() { l.subscriptions.unsubscribe(topic, woken) }
}

// Close closes the connection, which takes at most a second. From then on, registries with this listener poll. Close
// may be called again. It always returns nil. OnConnection must not call it.
func (l *Listener) Close() error {
	l.cancel()
	<-l.done
	return nil
}

// run listens on conn, and reconnects if it breaks, until ctx ends.
func (l *Listener) run(ctx context.Context, conn *pgconn.PgConn) {
	defer close(l.done)
	for conn != nil {
		err := l.receive(ctx, conn)
		disconnect(ctx, conn)
		if ctx.Err() != nil {
			return
		}
		l.onConnection(err)
		conn = l.reconnect(ctx)
	}
}

// receive wakes up subscribers until the connection breaks or ctx ends, and returns the error.
func (l *Listener) receive(ctx context.Context, conn *pgconn.PgConn) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, l.timeouts.idle)
		err := conn.WaitForNotification(waiting) // OnNotification wakes up subscribers
		idle := waiting.Err() != nil
		cancel()
		if idle && ctx.Err() == nil {
			err = l.ping(ctx, conn)
		}
		if err != nil {
			return err
		}
	}
}

// ping checks that the server still responds.
func (l *Listener) ping(ctx context.Context, conn *pgconn.PgConn) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeouts.reply)
	defer cancel()
	_, err := query(ctx, conn, "SELECT 1")
	return err
}

// reconnect returns a connection that listens, or nil if ctx has ended.
func (l *Listener) reconnect(ctx context.Context) *pgconn.PgConn {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		select {
		case <-time.After(pause/2 + rand.N(pause/2)): // random, so that processes do not reconnect at the same time
		case <-ctx.Done():
			return nil
		}
		conn, err := l.connect(ctx)
		if ctx.Err() != nil {
			if err == nil {
				disconnect(ctx, conn)
			}
			return nil
		}
		if err == nil {
			l.subscriptions.wakeAll()
		}
		l.onConnection(err)
		if err == nil {
			return conn
		}
	}
}

// connect returns a connection that listens.
func (l *Listener) connect(ctx context.Context) (*pgconn.PgConn, error) {
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	config := l.config.Copy()
	if l.beforeConnect != nil {
		if err := l.beforeConnect(limited, config); err != nil {
			return nil, err
		}
	}
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { l.subscriptions.wake(n.Payload) }
	config.BuildContextWatcherHandler = stopAtOnce
	conn, err := pgconn.ConnectConfig(limited, config)
	if err != nil {
		return nil, err
	}
	if err := startListening(limited, conn); err != nil {
		disconnect(ctx, conn)
		return nil, err
	}
	return conn, nil
}

// stopAtOnce is pgconn's default. Another one may wait on after the end of a context, and so may Close and the query
// to an idle connection.
func stopAtOnce(conn *pgconn.PgConn) ctxwatch.Handler {
	return &pgconn.DeadlineContextWatcherHandler{Conn: conn.Conn()}
}

// startListening runs LISTEN and checks that the connection leads to the server directly: a pooler reports another
// process id at connect than the server's own.
func startListening(ctx context.Context, conn *pgconn.PgConn) error {
	pid, err := query(ctx, conn, "LISTEN "+dialect.Channel+"; SELECT pg_backend_pid()")
	if err == nil && pid != strconv.FormatUint(uint64(conn.PID()), 10) {
		err = ErrPooled
	}
	return err
}
