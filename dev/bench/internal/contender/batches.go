package contender

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dialect"
)

// batches are the two batched statements, sent without a pause over two connections: while one
// acquires a batch, the other deletes the previous one. This is the limit for any client that
// batches.
func batches() []Contender {
	return []Contender{
		batchesAt("raw statements, batches/pgx", pgx.TxIsoLevel(""), "each a transaction of its own"),
		batchesAt("raw statements, serializable batches/pgx", pgx.Serializable, "those that acquire in serializable transactions"),
	}
}

// batchesAt returns batches that acquire in transactions of that level, or without one.
func batchesAt(name string, level pgx.TxIsoLevel, settings string) Contender {
	return Contender{
		Name:     name,
		Library:  "the bare statements",
		Version:  "-",
		Database: durable.Postgres,
		Settings: "prepared, " + settings + "; half of the workers' rows in each; no waiting, no lease, no retries",
		Quick:    true,
		Only:     []string{"pairs 64", "pairs 256"},
		Prepare:  func(ctx context.Context, at Place) error { return postgresPGX.with(ctx, at, postgresPGX.migrate) },
		Open:     func(ctx context.Context, at Place) (Session, error) { return openBatches(ctx, at, level) },
	}
}

// mostInBatch is the maximum number of rows that sqllock puts into one statement.
const mostInBatch = 256

type batchSession struct {
	level           pgx.TxIsoLevel // for acquiring; "" means no transaction
	texts           dialect.Statements
	acquire, remove *pgx.Conn
}

func openBatches(ctx context.Context, at Place, level pgx.TxIsoLevel) (Session, error) {
	names, err := dialect.NamesFor("")
	if err != nil {
		return nil, err
	}
	s := &batchSession{level: level, texts: dialect.Postgres().Statements(dialect.Spring7, names)}
	if s.acquire, err = pgx.Connect(ctx, at.DSN); err != nil {
		return nil, err
	}
	if s.remove, err = pgx.Connect(ctx, at.DSN); err != nil {
		return nil, errors.Join(err, s.acquire.Close(ctx))
	}
	return s, nil
}

func (*batchSession) Lock(context.Context, string) (Unlock, error) { return nil, ErrCannot }

func (*batchSession) Connections() int { return 2 }

func (s *batchSession) Close() error {
	ctx := context.Background()
	return errors.Join(s.acquire.Close(ctx), s.remove.Close(ctx))
}

// Run keeps as many rows in flight as there are workers.
func (s *batchSession) Run(ctx context.Context, workers int, warm, measure time.Duration) (Outcome, error) {
	size := min(max(workers/2, 1), mostInBatch)
	var both [2]rowBatch
	for i := range both {
		var err error
		if both[i], err = s.batch(rowsOf(i, size)); err != nil {
			return Outcome{}, err
		}
	}
	if _, err := s.repeat(ctx, both, warm); err != nil {
		return Outcome{}, err
	}
	began := time.Now()
	pairs, err := s.repeat(ctx, both, measure)
	return Outcome{PairsPerSecond: float64(pairs) / time.Since(began).Seconds()}, err
}

// A rowBatch is the statements that acquire and delete some rows.
type rowBatch struct {
	size            int
	acquire, remove bound
}

// A bound statement is a text with its arguments.
type bound struct {
	text string
	args []any
}

// A row is an item of a batch, as JSON.
type row struct {
	Key    string `json:"k"`
	Holder string `json:"h"`
	Left   int64  `json:"l"`
}

func newRow(key, holder string) row { return row{key, holder, sqllock.DefaultTTL.Microseconds()} }

// rowsOf returns n rows in the order of their keys, which are as long as sqllock's.
func rowsOf(number, size int) []row {
	rows := make([]row, size)
	for i := range rows {
		rows[i] = newRow(fmt.Sprintf("%08x-0000-3000-8000-%012x", i, number), fmt.Sprintf("batches-%d-%d", number, i))
	}
	return rows
}

// batch returns the statements for some rows.
func (s *batchSession) batch(rows []row) (b rowBatch, err error) {
	values := map[string]any{"region": sqllock.DefaultRegion, "ttl": sqllock.DefaultTTL.Microseconds(), "rows": asJSON(rows)}
	b.size = len(rows)
	if b.acquire, err = bind(s.texts.AcquireAll, values); err == nil {
		b.remove, err = bind(s.texts.DeleteAll, values)
	}
	return b, err
}

func bind(text string, values map[string]any) (bound, error) {
	text, args, err := sqlx.Named(text, values)
	return bound{sqlx.Rebind(sqlx.DOLLAR, text), args}, err
}

func asJSON(items any) string {
	text, _ := json.Marshal(items) // strings and numbers always can be
	return string(text)
}

// repeat sends the batches for a while, and returns the number of pairs.
func (s *batchSession) repeat(ctx context.Context, both [2]rowBatch, lasting time.Duration) (pairs int, err error) {
	free, held := make(chan rowBatch, len(both)), make(chan rowBatch, len(both))
	for _, b := range both {
		free <- b
	}
	var acquireErr, removeErr error
	var acquiring sync.WaitGroup
	acquiring.Go(func() {
		defer close(held)
		for end := time.Now().Add(lasting); time.Now().Before(end) && acquireErr == nil; {
			b := <-free
			acquireErr = s.acquireAll(ctx, b)
			held <- b
		}
	})
	for b := range held {
		removeErr = errors.Join(removeErr, b.send(ctx, s.remove, b.remove))
		pairs += b.size
		free <- b
	}
	acquiring.Wait()
	return pairs, errors.Join(acquireErr, removeErr)
}

func (s *batchSession) acquireAll(ctx context.Context, b rowBatch) error {
	if s.level == "" {
		return b.send(ctx, s.acquire, b.acquire)
	}
	return pgx.BeginTxFunc(ctx, s.acquire, pgx.TxOptions{IsoLevel: s.level}, func(tx pgx.Tx) error {
		return b.send(ctx, tx, b.acquire)
	})
}

// An executor is a connection or a transaction.
type executor interface {
	Exec(ctx context.Context, text string, args ...any) (pgconn.CommandTag, error)
}

var errBatch = errors.New("not all rows of a batch")

// send runs one of the batch's statements. pgx prepares it once.
func (b rowBatch) send(ctx context.Context, on executor, statement bound) error {
	tag, err := on.Exec(ctx, statement.text, statement.args...)
	if err == nil && tag.RowsAffected() != int64(b.size) {
		err = fmt.Errorf("%w: %s of %d", errBatch, tag, b.size)
	}
	return err
}
