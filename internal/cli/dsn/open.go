package dsn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

const (
	// OpenTimeout is the time limit of the first connection. A network that drops
	// packets would otherwise keep a user waiting for minutes.
	OpenTimeout = 10 * time.Second

	// maxConnections is enough: one acquires and renews, the other reads.
	maxConnections = 2
)

// Open opens the target and checks that it answers. If create is true, an SQLite file
// that does not exist is created.
func (t Target) Open(ctx context.Context, create bool) (*sqlx.DB, error) {
	source := t.source
	if create && t.creating != "" {
		source = t.creating
	}
	if err := silenceMySQL(); err != nil {
		return nil, err
	}
	db, err := sqlx.Open(t.driver, source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections)
	limited, cancel := context.WithTimeout(ctx, OpenTimeout)
	defer cancel()
	if err := t.ping(limited, db); err != nil {
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case limited.Err() != nil:
			err = fmt.Errorf("no answer within %v: %w", OpenTimeout, err)
		}
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// silenceMySQL keeps the driver from writing the errors that it returns to stderr too.
var silenceMySQL = sync.OnceValue(func() error { return mysql.SetLogger(&mysql.NopLogger{}) })

// busyPause is the time between attempts to open a file that another process is
// writing to.
const busyPause = 50 * time.Millisecond

// ping opens the first connection. It retries while an SQLite file is busy: the switch
// to WAL upgrades a read lock to a write lock, and then SQLite fails at once, whatever
// the busy timeout is.
func (t Target) ping(ctx context.Context, db *sqlx.DB) error {
	for {
		err := db.PingContext(ctx)
		if err == nil || !t.Dialect.Embedded || t.Dialect.Classify(err) != dialect.Transient {
			return err
		}
		select {
		case <-time.After(rand.N(2 * busyPause)): // random, so that processes do not retry at the same times
		case <-ctx.Done():
			return err
		}
	}
}
