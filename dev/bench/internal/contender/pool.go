package contender

import (
	"context"
	"database/sql"
	"errors"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "github.com/lib/pq"              // the driver "postgres"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dialect"
)

// A database is a database with tables, and a driver.
type database struct {
	kind    string // one of package durable's
	driver  string
	short   string // of the driver
	dialect func() dialect.Dialect
}

var (
	postgresPQ  = database{durable.Postgres, "postgres", "pq", dialect.Postgres}
	postgresPGX = database{durable.Postgres, "pgx", "pgx", dialect.Postgres}
	mariaDB     = database{durable.MariaDB, "mysql", "mysql", dialect.MySQL}
	oracleMySQL = database{durable.OracleMySQL, "mysql", "mysql 9.7", dialect.MySQL}
	sqlite      = database{durable.SQLite, "sqlite", "sqlite", dialect.SQLite}
)

// open opens a pool that keeps its connections until it is closed.
func (d database) open(at Place) (*sql.DB, error) {
	dsn := at.DSN
	if d.kind == durable.SQLite {
		// In WAL mode, FULL makes commits survive a crash of the machine.
		dsn = "file:" + at.DSN + "/bench.db?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	}
	db, err := sql.Open(d.driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(at.Connections)
	db.SetMaxIdleConns(at.Connections)
	return db, nil
}

// with opens a pool for one task.
func (d database) with(ctx context.Context, at Place, task func(context.Context, *sql.DB) error) error {
	db, err := d.open(at)
	if err != nil {
		return err
	}
	return errors.Join(task(ctx, db), db.Close())
}

// A pool is the common part of most sessions.
type pool struct{ db *sql.DB }

func (p pool) Connections() int { return p.db.Stats().OpenConnections }

func (p pool) Close() error { return p.db.Close() }
