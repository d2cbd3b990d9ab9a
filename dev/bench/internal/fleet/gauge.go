package fleet

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

// A gauge reads what a server has done.
type gauge struct {
	db     *sqlx.DB
	server *durable.Server
	texts  texts
}

// A reading is what a server has done until then.
type reading struct {
	at        time.Time
	rows, wal int64
	cpu       time.Duration
}

// texts are statements of one kind of server.
type texts struct {
	driver    string
	dialect   dialect.Dialect
	fill      string
	rows, wal string
	size      string // of the table and its indexes, in bytes
}

var textsOf = map[string]texts{
	durable.Postgres: {
		driver: "pgx", dialect: dialect.Postgres(),
		fill: "INSERT INTO INT_LOCK SELECT 'other' || i, 'OTHER', 'other-' || i, now(), now() + INTERVAL '1 day' FROM generate_series(1, %d) AS i",
		rows: "SELECT COALESCE(seq_tup_read, 0) + COALESCE(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'int_lock'",
		wal:  "SELECT CAST(pg_current_wal_lsn() - '0/0' AS BIGINT)",
		size: "SELECT pg_total_relation_size('INT_LOCK')",
	},
	durable.MariaDB: {
		driver: "mysql", dialect: dialect.MySQL(),
		fill: "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER)" +
			" SELECT CONCAT('other', seq), 'OTHER', CONCAT('other-', seq), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 DAY FROM seq_1_to_%d",
		rows: "SELECT CAST(SUM(VARIABLE_VALUE) AS SIGNED) FROM information_schema.global_status" + // not all versions count Innodb_rows_read
			" WHERE VARIABLE_NAME IN ('Handler_read_first', 'Handler_read_key', 'Handler_read_next')",
		wal:  "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM information_schema.global_status WHERE VARIABLE_NAME = 'Innodb_os_log_written'",
		size: "SELECT FILE_SIZE FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME LIKE '%/INT_LOCK'", // indexes are in the same file
	},
}

// newGauge makes the tables anew, with so many rows of others. Nothing analyses the table before the fleet
// uses it.
func newGauge(ctx context.Context, s *durable.Server, rows int) (*gauge, error) {
	g := &gauge{server: s, texts: textsOf[s.Kind]}
	var err error
	if g.db, err = sqlx.ConnectContext(ctx, g.texts.driver, s.Server.DSN()); err != nil {
		return nil, err
	}
	if err := migrations.Goto(ctx, g.db.DB, g.texts.dialect, 0, &migrations.Options{Force: true}); err != nil {
		return nil, err
	}
	if err := migrations.Up(ctx, g.db.DB, g.texts.dialect, nil); err != nil {
		return nil, err
	}
	if rows > 0 {
		_, err = g.db.ExecContext(ctx, fmt.Sprintf(g.texts.fill, rows))
	}
	return g, err
}

// read waits until sessions have reported to PostgreSQL's statistics, which they do once a second.
func (g *gauge) read(ctx context.Context) (r reading, err error) {
	time.Sleep(1500 * time.Millisecond)
	r.at, r.cpu = time.Now(), g.server.CPU()
	if err := g.db.GetContext(ctx, &r.rows, g.texts.rows); err != nil {
		return r, err
	}
	return r, g.db.GetContext(ctx, &r.wal, g.texts.wal)
}

// keepSnapshot begins a transaction of PostgreSQL whose snapshot keeps dead rows until release is called.
func (g *gauge) keepSnapshot(ctx context.Context) (release func() error, err error) {
	tx, err := g.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return nil, err
	}
	if _, err = tx.ExecContext(ctx, g.texts.size); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx.Rollback, nil
}

func (g *gauge) close() error { return g.db.Close() }
