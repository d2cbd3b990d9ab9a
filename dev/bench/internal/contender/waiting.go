package contender

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock/dialect"
)

// rawNotify is a minimal implementation of waiting for a row: try, wait for a notification, try again.
// This is the limit for handing a lock to another process.
func rawNotify() Contender {
	c := rawContender("raw statements, notify", "prepared; a caller that finds the row taken waits for NOTIFY and retries; no lease, no retries", postgresPGX)
	c.Loads = []string{"hand-off"}
	c.Open = func(ctx context.Context, at Place) (Session, error) {
		raw, err := openRaw(ctx, postgresPGX, at, dialect.Channel)
		if err != nil {
			return nil, err
		}
		s := &waitingSession{rawSession: raw}
		if s.listener, err = pgx.Connect(ctx, at.DSN); err == nil {
			_, err = s.listener.Exec(ctx, "LISTEN "+dialect.Channel)
		}
		if err != nil {
			return nil, errors.Join(err, s.Close()) //nolint:contextcheck // ctx may have ended
		}
		return s, nil
	}
	return c
}

// A waitingSession has one caller at a time.
type waitingSession struct {
	*rawSession
	listener *pgx.Conn // nil if it could not be opened
	held     Unlock    // nil if no row is held
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
			_, err = s.listener.WaitForNotification(ctx)
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

// Connections are those of the pool and of the listener.
func (s *waitingSession) Connections() int { return s.rawSession.Connections() + 1 }

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
