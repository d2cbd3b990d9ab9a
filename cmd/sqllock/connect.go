package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

const (
	dsnVariable = "SQLLOCK_DSN"

	// connectTimeout bounds the first connection. Networks that swallow packets
	// would otherwise keep a user waiting for minutes.
	connectTimeout = 10 * time.Second

	// maxConnections suffices: one to take and renew, one to look.
	maxConnections = 2
)

// A connection is an open database.
type connection struct {
	DB       *sqlx.DB
	Dialect  dialect.Dialect
	Name     string // the DSN without passwords, for messages
	Embedded bool   // the default SQLite file
}

// Close closes the database.
func (c *connection) Close() error {
	if err := c.DB.Close(); err != nil {
		return fmt.Errorf("%w: close %s: %w", sqllock.ErrDatabase, c.Name, err)
	}
	return nil
}

// connect opens the database that the user chose and sees that it answers. Only
// the default SQLite file is created and migrated by itself; any other database
// belongs to somebody, who runs `sqllock migrate up`.
func (g *globals) connect(ctx context.Context) (*connection, error) {
	c, err := g.open(ctx, mayExist)
	if err != nil || !c.Embedded {
		return c, err
	}
	if err := migrateEmbedded(ctx, c, g.prefix); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// presence says whether a SQLite file that is not there is an error.
type presence bool

const (
	mayExist  presence = false // and must, unless it is the default file
	mayCreate presence = true
)

// open is connect without migrations.
func (g *globals) open(ctx context.Context, file presence) (*connection, error) {
	if _, err := dialect.NamesFor(g.prefix); err != nil {
		return nil, usageError("%w", err)
	}
	dsn, embedded, err := g.chosenDSN()
	if err != nil {
		return nil, err
	}
	t, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	c := &connection{Dialect: t.dialect, Name: t.redacted, Embedded: embedded}
	if c.DB, err = t.open(ctx, embedded || file == mayCreate); err != nil {
		err = fmt.Errorf("%w: connect to %s: %w", sqllock.ErrDatabase, c.Name, err)
		return nil, t.advise(err, embedded, file)
	}
	return c, nil
}

// chosenDSN returns the DSN of the flag, else that of the environment, else that
// of the default file, whose directory it creates.
func (g *globals) chosenDSN() (dsn string, embedded bool, err error) {
	if g.dsn != "" {
		return g.dsn, false, nil
	}
	if dsn = os.Getenv(dsnVariable); dsn != "" {
		return dsn, false, nil
	}
	directory, err := stateDirectory()
	if err != nil {
		return "", false, withHint(usageError("no place for the default database: %w", err), "--dsn sqlite:/path/to/locks.db")
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		err = fmt.Errorf("%w: create the directory of the default database: %w", sqllock.ErrDatabase, err)
		return "", false, withHint(err, "%s", embeddedHint)
	}
	return sqliteDSN(filepath.Join(directory, "sqllock.db")), true, nil
}

// embeddedHint is for users whose home cannot be written to, or is another's.
const embeddedHint = "--dsn sqlite:FILE, or XDG_STATE_HOME=DIRECTORY, where this user may write"

// open opens the target and sees that it answers. create says that an SQLite
// file is created if there is none.
func (t target) open(ctx context.Context, create bool) (*sqlx.DB, error) {
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
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := t.ping(limited, db); err != nil {
		if ctx.Err() == nil && limited.Err() != nil {
			err = fmt.Errorf("no answer within %v: %w", connectTimeout, err)
		}
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// silenceMySQL keeps the driver from writing to stderr beside the errors that it
// returns.
var silenceMySQL = sync.OnceValue(func() error { return mysql.SetLogger(&mysql.NopLogger{}) })

// busyPause is the time between attempts to open a file that another process is
// writing to.
const busyPause = 50 * time.Millisecond

// ping opens the first connection. It retries while an SQLite file is busy: the
// switch to WAL upgrades a read lock to a write lock, and for that SQLite does not
// ask its busy handler but fails at once, however long the busy timeout is.
func (t target) ping(ctx context.Context, db *sqlx.DB) error {
	for {
		err := db.PingContext(ctx)
		if err == nil || !t.dialect.Embedded || t.dialect.Classify(err) != dialect.Transient {
			return err
		}
		select {
		case <-time.After(rand.N(2 * busyPause)): // at random, so that contenders do not meet again
		case <-ctx.Done():
			return err
		}
	}
}

// advise adds to an error of open what may be done about it.
func (t target) advise(err error, embedded bool, file presence) error {
	switch {
	case embedded && unwritable(err):
		return withHint(err, "%s", embeddedHint)
	case t.missing() && file == mayExist:
		return withHint(err, "sqllock migrate up, which creates the file; its directory must be there")
	case errors.Is(err, pq.ErrSSLNotSupported):
		return withHint(err, "sslmode=prefer or sslmode=disable among the parameters of the DSN, if you trust the network")
	default:
		return err
	}
}

// repository returns the lock table of the flags.
func (g *globals) repository(c *connection, opts sqllock.RepositoryOptions) (*sqllock.Repository, error) {
	opts.Region, opts.Prefix, opts.Keys = g.region, g.prefix, g.keys()
	r, err := sqllock.NewRepository(c.DB, c.Dialect, &opts)
	if missesTable(err) {
		err = withHint(err, "%s", migrateUp(g.prefix))
	}
	return r, err
}

// keys is the mapping of keys that the flags choose.
func (g *globals) keys() sqllock.KeyMapper {
	if g.plainKeys {
		return sqllock.PlainKeys
	}
	return sqllock.SpringKeys
}

// withRepository runs fn with the lock table of the flags.
func (g *globals) withRepository(ctx context.Context, fn func(*connection, *sqllock.Repository) error) (err error) {
	c, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	// Nothing is acquired: Spring's own table will do.
	r, err := g.repository(c, sqllock.RepositoryOptions{WithoutFence: true}) //nolint:contextcheck // NewRepository takes none
	if err != nil {
		return err
	}
	return fn(c, r)
}

// withDatabase runs fn with the database of the flags, as it is.
func (g *globals) withDatabase(ctx context.Context, file presence, fn func(*connection) error) (err error) {
	c, err := g.open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return fn(c)
}

// sqlDB is the pool as package migrations wants it.
func (c *connection) sqlDB() *sql.DB { return c.DB.DB }
