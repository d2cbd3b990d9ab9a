package contender

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/bench/internal/durable"
	"github.com/sqllock/sqllock/dialect"
)

// waiters are the least that waiting for a row can be: try, wait for a notification or
// for the time between two tries, try again. It is the limit for whoever lets another
// process have the lock.
func waiters() []Contender {
	return []Contender{
		waitingContender("raw statements, notify/pgx", "prepared; who finds the row taken waits for NOTIFY, and tries again; no lease, no retries", true),
		waitingContender("raw statements, polling/pgx", "prepared; who finds the row taken tries again each 100 ms; no lease, no retries", false),
	}
}

func waitingContender(name, settings string, listens bool) Contender {
	return Contender{
		Name:     name,
		Library:  "the bare statements",
		Version:  "-",
		Database: durable.Postgres,
		Settings: settings,
		Quick:    true,
		Only:     []string{"hand-off"},
		Prepare:  func(ctx context.Context, at Place) error { return postgresPGX.with(ctx, at, postgresPGX.migrate) },
		Open: func(ctx context.Context, at Place) (Session, error) {
			if listens {
				return listen(ctx, at)
			}
			session, err := openRaw(ctx, postgresPGX, at, rawOptions{})
			return pollingSession{session}, err
		},
	}
}

type pollingSession struct{ Session }

// Lock waits as the default of sqllock and of Spring does.
func (s pollingSession) Lock(ctx context.Context, key string) (Unlock, error) {
	return untilFree(ctx, s.Session, key, func() error {
		time.Sleep(sqllock.DefaultIdleBetweenTries)
		return nil
	})
}

func untilFree(ctx context.Context, s Session, key string, wait func() error) (Unlock, error) {
	for {
		unlock, err := s.Lock(ctx, key)
		if !errors.Is(err, errTaken) {
			return unlock, err
		}
		if err := wait(); err != nil {
			return nil, err
		}
	}
}

// A listeningSession has one who waits at a time.
type listeningSession struct {
	*rawSession
	ear *pgx.Conn
}

func listen(ctx context.Context, at Place) (_ Session, err error) {
	var l listeningSession
	if l.ear, err = pgx.Connect(ctx, at.DSN); err != nil {
		return nil, err
	}
	if _, err = l.ear.Exec(ctx, "LISTEN "+dialect.Channel); err == nil {
		l.rawSession, err = openRaw(ctx, postgresPGX, at, rawOptions{tell: true})
	}
	if err != nil {
		return nil, errors.Join(err, l.ear.Close(ctx))
	}
	return l, nil
}

func (l listeningSession) Lock(ctx context.Context, key string) (Unlock, error) {
	return untilFree(ctx, l.rawSession, key, func() error {
		_, err := l.ear.WaitForNotification(ctx)
		return err
	})
}

// Connections are those of the pool, and the one that listens.
func (l listeningSession) Connections() int { return l.rawSession.Connections() + 1 }

func (l listeningSession) Close() error {
	return errors.Join(l.ear.Close(context.Background()), l.rawSession.Close())
}
