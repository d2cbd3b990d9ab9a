package contender

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
)

// springs are Spring Integration's own JdbcLockRegistry, in a Java process.
func springs() []Contender {
	return []Contender{
		spring{postgresPQ}.contender(anything),
		spring{mariaDB}.contender([]string{"pairs", "hand-off"}),
	}
}

// A spring is Spring's registry on a database.
type spring struct{ database }

func (d spring) contender(loads []string) Contender {
	return Contender{
		Name:        "spring 7/" + d.kind,
		Library:     "org.springframework.integration:spring-integration-jdbc",
		Version:     "7.0",
		FindVersion: javaVersion,
		Database:    d.kind,
		Settings:    "the defaults; HikariCP with 10 connections; in contests, four registries to a JVM",
		Together:    4,
		Quick:       d.kind == durable.Postgres,
		Loads:       loads,
		Prepare: func(ctx context.Context, at Place) error {
			if _, err := java(ctx); err != nil {
				return err
			}
			return errors.Join(d.with(ctx, at, d.migrate), d.warm(ctx, at))
		},
		Open: d.openSession,
	}
}

// warm lets Java compile its code before a measurement.
func (d spring) warm(ctx context.Context, at Place) error {
	session, err := d.openSession(ctx, at)
	if err != nil {
		return err
	}
	const workers, lasting = 16, time.Second
	_, err = session.(Runner).Run(ctx, workers, lasting, lasting)
	return errors.Join(err, session.Close())
}

func (spring) openSession(ctx context.Context, at Place) (Session, error) {
	const pool = 10 // HikariCP's default
	start := java
	if at.Apart {
		start = newJava
	}
	jvm, err := start(ctx)
	if err != nil {
		return nil, err
	}
	s := &springSession{alone: at.Alone, connections: pool, idle: make(chan string, maxThreads)}
	if at.Apart {
		s.apart = jvm
	}
	s.client, err = jvm.Open(ctx, javaclient.Settings{DSN: at.DSN, TTL: at.TTL})
	return s, err
}

// A springSession uses a Java thread for each lock that is held or waited for.
type springSession struct {
	client      *javaclient.Client
	apart       *javaclient.JVM // the session's own
	alone       bool
	connections int
	idle        chan string // names of threads without work
}

const maxThreads = 2000

func (s *springSession) Lock(ctx context.Context, key string) (Unlock, error) {
	name := s.threadName()
	thread := s.client.Thread(name)
	if err := thread.Lock(ctx, key); err != nil {
		return nil, err // the thread continues to wait
	}
	return func(ctx context.Context) error {
		defer func() { s.idle <- name }()
		return thread.Unlock(ctx, key)
	}, nil
}

// threadName returns a single name if Place.Alone is true. With a thread for each of twenty keys,
// one of the threads hung in JdbcLock.lock; a single thread that holds all of them does not.
func (s *springSession) threadName() string {
	if s.alone {
		return "alone"
	}
	select {
	case name := <-s.idle:
		return name
	default:
		return newThread()
	}
}

// Run runs the load in the Java process, without a request for each lock.
func (s *springSession) Run(ctx context.Context, workers int, warm, measure time.Duration) (Outcome, error) {
	if _, err := s.client.Bench(ctx, javaclient.Load{Threads: workers, Duration: warm}); err != nil {
		return Outcome{}, err
	}
	result, err := s.client.Bench(ctx, javaclient.Load{Threads: workers, Duration: measure})
	if err == nil && result.Failures > 0 {
		err = fmt.Errorf("%w: %d of %d", errSpring, result.Failures, result.Failures+result.Pairs)
	}
	s.connections = min(s.connections, workers)
	return Outcome{PairsPerSecond: result.PerSecond(), P50: result.P50, P99: result.P99}, err
}

func (s *springSession) Connections() int { return s.connections }

// Close does not wait for threads that wait for locks, since these cannot be interrupted.
func (s *springSession) Close() error {
	if s.apart != nil {
		s.apart.Kill()
		return nil
	}
	return s.client.Close(context.Background())
}

// jvm is the Java process. It runs for the whole run, because Java code gets faster while it runs.
var jvm struct {
	sync.Mutex
	running *javaclient.JVM
}

var errSpring = errors.New("pairs that threw an exception")

// java returns the process, and starts it in the first call.
func java(ctx context.Context) (*javaclient.JVM, error) {
	jvm.Lock()
	defer jvm.Unlock()
	if jvm.running != nil {
		return jvm.running, nil
	}
	started, err := newJava(ctx)
	if err == nil {
		jvm.running = started
	}
	return started, err
}

// newJava starts a process for the caller alone.
func newJava(ctx context.Context) (*javaclient.JVM, error) {
	program, err := javaclient.Build(ctx, javaclient.Spring7)
	if errors.Is(err, javaclient.ErrMissing) {
		return nil, errors.Join(ErrMissing, err)
	}
	if err != nil {
		return nil, err
	}
	return program.Start(ctx, &javaclient.Options{JVM: []string{"-Xmx1g"}})
}

func javaVersion(ctx context.Context) (string, error) {
	running, err := java(ctx)
	if err != nil {
		return "", err
	}
	return running.Version(ctx)
}

// End ends the process that contenders keep between sessions.
func End() error {
	jvm.Lock()
	defer jvm.Unlock()
	if jvm.running == nil {
		return nil
	}
	defer func() { jvm.running = nil }()
	return jvm.running.Close()
}

var threads atomic.Int64

func newThread() string { return "thread" + strconv.FormatInt(threads.Add(1), 10) }
