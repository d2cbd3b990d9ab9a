package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/transaction"
)

// OpenTimeout is the time limit of the first connection. A network that drops packets would otherwise keep a user
// waiting for minutes.
const OpenTimeout = 10 * time.Second

// HostTimeout is the time limit of a connection to one of a few hosts, unless the DSN has one: the next one must have
// its turn before the statement that needs a connection times out.
const HostTimeout = 2 * time.Second

// allHosts is the time for all hosts but the last: less than a batch has.
const allHosts = 4 * time.Second

// TimeoutOf returns the time limit of a connection to each of some hosts, unless the DSN has one.
func TimeoutOf(hosts int) time.Duration {
	if hosts < 2 {
		return OpenTimeout
	}
	return min(HostTimeout, allHosts/time.Duration(hosts-1))
}

// connect returns a pool of the target, of up to limit connections, and checks that it answers. If create is true, an
// SQLite file that does not exist is created.
func (t Target) connect(ctx context.Context, s Settings, create bool, limit int) (*sqlx.DB, error) {
	source := t.Source
	if create && t.Creating != "" {
		source = t.Creating
	}
	db, err := t.open(source, s, limit)
	if err != nil {
		return nil, err
	}
	patience := max(OpenTimeout, dbcall.TestPatience(ctx))
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := t.pingServer(limited, db); err != nil {
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case errors.Is(err, failure.ErrInvalid): // it is another server
		case limited.Err() != nil:
			err = fmt.Errorf("no answer within %v: %w", patience, err)
		}
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// open returns a pool that has not connected yet.
func (t Target) open(source string, s Settings, limit int) (*sqlx.DB, error) {
	s.NotMariaDB = t.notMariaDB
	connector, err := t.Connector(source, s)
	if err != nil {
		return nil, err
	}
	if !sqltext.Of(t.Dialect).Embedded {
		connector = t.rotate(connector, s)
	}
	db := sqlx.NewDb(sql.OpenDB(connector), t.Driver)
	setLimit(db, limit)
	db.SetConnMaxIdleTime(t.Idle)
	return db, nil
}

// turns returns the pool of the sessions that wait for turns: as long as the server lets them. It connects when it is
// used, and keeps no connection for long.
func (t Target) turns() (*sqlx.DB, error) {
	if sqltext.Of(t.Dialect).Turns(sqltext.Names{}).Begin == "" {
		return nil, nil
	}
	db, err := t.open(t.Source, Settings{}, turnSessions)
	if err == nil {
		db.SetConnMaxIdleTime(turnIdle)
	}
	return db, err
}

const (
	turnSessions = 16 // more than wait at a time
	turnIdle     = 10 * time.Second
)

func setLimit(db *sqlx.DB, limit int) {
	db.SetMaxOpenConns(limit)
	db.SetMaxIdleConns(limit)
}

// busyPause is the time between attempts to open a file that another process is writing to.
const busyPause = 50 * time.Millisecond

// ping opens the first connection. It retries while an SQLite file is busy: the switch to WAL upgrades a read lock to
// a write lock, and then SQLite fails at once, whatever the busy timeout is.
func (t Target) ping(ctx context.Context, db *sqlx.DB) error {
	d := sqltext.Of(t.Dialect)
	pool := transaction.Pool{DB: db.DB, Dialect: &d}
	for {
		_, err := transaction.On(ctx, pool, func(conn *sql.Conn) (none struct{}, err error) { return none, conn.PingContext(ctx) })
		if err == nil || !d.Embedded || d.Classify(err) != sqltext.Transient {
			return err
		}
		select {
		case <-time.After(rand.N(2 * busyPause)): // random, so that processes do not retry at the same times
		case <-ctx.Done():
			return err
		}
	}
}
