package contender

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

// A springVariant is a configuration of Spring's registry.
type springVariant struct {
	name, settings string
	generation     javaclient.Generation
	only           []string // loads; nil is all
	best           bool
}

var (
	// springVariants are those on PostgreSQL. To add one, add a line.
	springVariants = []springVariant{
		{name: "spring 7", generation: javaclient.Spring7, settings: "the defaults; HikariCP with 10 connections"},
		{name: "spring 7 at its best", generation: javaclient.Spring7, best: true, settings: "as many connections as the others; INSERT … ON CONFLICT DO NOTHING"},
		{
			name: "spring 6", generation: javaclient.Spring6, settings: "the defaults; HikariCP with 10 connections",
			only: []string{"pairs 1", "pairs 64", "wire"},
		},
	}
	// springOnMariaDB uses the default INSERT: Spring's documentation has no better one.
	springOnMariaDB = []springVariant{
		{name: "spring 7", generation: javaclient.Spring7, settings: "the defaults; HikariCP with 10 connections", only: []string{"pairs", "hand-off", "wire"}},
		{name: "spring 7 at its best", generation: javaclient.Spring7, best: true, settings: "as many connections as the others", only: []string{"pairs", "wire"}},
	}
)

// springs are Spring Integration's own JdbcLockRegistry, in a Java process.
func springs() []Contender {
	var all []Contender
	for _, v := range springVariants {
		all = append(all, v.contender(postgresPQ))
	}
	for _, v := range springOnMariaDB {
		all = append(all, v.contender(mariaDB))
	}
	return all
}

func (v springVariant) contender(d database) Contender {
	return Contender{
		Name:        v.name + "/" + d.kind,
		Library:     "org.springframework.integration:spring-integration-jdbc",
		Version:     map[javaclient.Generation]string{javaclient.Spring6: "6.5", javaclient.Spring7: "7.0"}[v.generation],
		FindVersion: func(ctx context.Context) (string, error) { return javaVersion(ctx, v.generation) },
		Database:    d.kind,
		Settings:    v.settings,
		Quick:       v.name == "spring 7" && d.kind == durable.Postgres,
		Only:        v.only,
		Prepare: func(ctx context.Context, at Place) error {
			if _, err := java(ctx, v.generation); err != nil {
				return err
			}
			err := d.with(ctx, at, func(ctx context.Context, db *sql.DB) error {
				return migrations.Up(ctx, db, d.dialect(), &migrations.Options{Prefix: v.prefix(), Layout: v.layout()})
			})
			return errors.Join(err, v.warm(ctx, at, d))
		},
		Open: func(ctx context.Context, at Place) (Session, error) { return v.open(ctx, at, d) },
	}
}

// warm lets Java compile its code before a measurement.
func (v springVariant) warm(ctx context.Context, at Place, d database) error {
	session, err := v.open(ctx, at, d)
	if err != nil {
		return err
	}
	const workers, lasting = 16, time.Second
	_, err = session.(Runner).Run(ctx, workers, lasting, lasting)
	return errors.Join(err, session.Close())
}

// prefix distinguishes the four-column table.
func (v springVariant) prefix() string {
	if v.generation == javaclient.Spring6 {
		return "FOUR_"
	}
	return ""
}

func (v springVariant) layout() dialect.Layout {
	if v.generation == javaclient.Spring6 {
		return dialect.Spring6
	}
	return dialect.Spring7
}

func (v springVariant) open(ctx context.Context, at Place, d database) (Session, error) {
	start := java
	if at.Apart {
		start = newJava
	}
	jvm, err := start(ctx, v.generation)
	if err != nil {
		return nil, err
	}
	settings := javaclient.Settings{DSN: at.DSN, TTL: at.TTL, Prefix: v.prefix()}
	s := &springSession{alone: at.Alone, connections: 10, idle: make(chan string, maxThreads)}
	if v.best {
		settings.Pool, s.connections = at.Connections, at.Connections
		if d.kind == durable.Postgres {
			settings.InsertSuffix = " ON CONFLICT DO NOTHING"
		}
	}
	if at.Apart {
		s.apart = jvm
	}
	s.client, err = jvm.Open(ctx, settings)
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
