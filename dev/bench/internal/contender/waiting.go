package contender

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dialect"
)

// waiters are a minimal implementation of waiting for a row: try, wait for a notification or for
// the polling interval, try again. This is the limit for handing a lock to another process.
func waiters() []Contender {
	return []Contender{
		waitingContender("raw statements, notify/pgx", "prepared; a caller that finds the row taken waits for NOTIFY and retries; no lease, no retries", true),
		waitingContender("raw statements, polling/pgx", "prepared; a caller that finds the row taken retries every 100 ms; no lease, no retries", false),
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
			raw, err := openRaw(ctx, postgresPGX, at, rawOptions{tell: listens})
			if err != nil {
				return nil, err
			}
			s := &waitingSession{rawSession: raw}
			if listens {
				err = s.listen(ctx, at)
			}
			return s, err
		},
	}
}

// A waitingSession has one caller at a time.
type waitingSession struct {
	*rawSession
	listener *pgx.Conn // nil if the session polls
	held     Unlock    // nil if no row is held
}

func (s *waitingSession) listen(ctx context.Context, at Place) (err error) {
	if s.listener, err = pgx.Connect(ctx, at.DSN); err == nil {
		_, err = s.listener.Exec(ctx, "LISTEN "+dialect.Channel)
	}
	if err != nil {
		return errors.Join(err, s.Close()) //nolint:contextcheck // ctx may have ended
	}
	return nil
}

// Lock tries until it has acquired the row.
func (s *waitingSession) Lock(ctx context.Context, key string) (Unlock, error) {
	for {
		unlock, err := s.rawSession.Lock(ctx, key)
		if err == nil {
			s.held = unlock
			return s.unlock, nil
		}
		if errors.Is(err, errTaken) {
			err = s.wait(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *waitingSession) unlock(ctx context.Context) error {
	unlock := s.held
	s.held = nil
	return unlock(ctx)
}

// wait waits for a notification, or for the default polling interval of sqllock and Spring.
func (s *waitingSession) wait(ctx context.Context) error {
	if s.listener == nil {
		time.Sleep(sqllock.DefaultIdleBetweenTries)
		return ctx.Err()
	}
	_, err := s.listener.WaitForNotification(ctx)
	return err
}

// Connections are those of the pool and of the listener.
func (s *waitingSession) Connections() int {
	if s.listener == nil {
		return s.rawSession.Connections()
	}
	return s.rawSession.Connections() + 1
}

// Close releases the row, since it has no lease that would expire soon.
func (s *waitingSession) Close() (err error) {
	ctx := context.Background()
	if s.held != nil {
		err = s.unlock(ctx)
	}
	if s.listener != nil {
		err = errors.Join(err, s.listener.Close(ctx))
	}
	return errors.Join(err, s.rawSession.Close())
}
