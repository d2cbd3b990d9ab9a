package main

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/fakedb"
)

var isolations = []sqllock.Isolation{sqllock.Serializable, sqllock.ReadCommitted, sqllock.Autocommit}

func newRegistry(tb testing.TB, db *sql.DB, isolation sqllock.Isolation) *sqllock.Registry {
	tb.Helper()
	tb.Cleanup(func() { db.Close() })
	repository := check.Value(sqllock.NewRepository(tb.Context(), db, dialect.Postgres(), &sqllock.RepositoryOptions{Layout: dialect.Spring7, Isolation: isolation}))(tb)
	return check.Value(sqllock.NewRegistry(repository, nil))(tb)
}

func pair(ctx context.Context, tb testing.TB, registry *sqllock.Registry) {
	tb.Helper()
	lock := check.Value(registry.Obtain("orders/42"))(tb)
	check.Must(tb, check.Value(lock.Lock(ctx))(tb).Unlock(ctx))
}

// BenchmarkPair measures an uncontended pair over a driver that returns immediately and
// allocates nothing. So it counts the allocations of sqllock and database/sql.
func BenchmarkPair(b *testing.B) {
	for _, isolation := range isolations {
		b.Run(isolation.String(), func(b *testing.B) {
			registry := newRegistry(b, fakedb.Open(), isolation)
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			pair(ctx, b, registry)
			b.ReportAllocs()
			for b.Loop() {
				pair(ctx, b, registry)
			}
		})
	}
}

// TestPairAllocations holds what a pair without observers allocates. In Autocommit this driver, as lib/pq,
// is asked first whether the connection was left in a transaction. The batches' goroutines may add a
// fraction.
func TestPairAllocations(t *testing.T) {
	for isolation, most := range map[sqllock.Isolation]float64{sqllock.Serializable: 44, sqllock.ReadCommitted: 44, sqllock.Autocommit: 41} {
		registry := newRegistry(t, fakedb.Open(), isolation)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := testing.AllocsPerRun(1000, func() { pair(ctx, t, registry) })
		for range 4 { // the least: after a collection of garbage, pools are filled again
			n = min(n, testing.AllocsPerRun(1000, func() { pair(ctx, t, registry) }))
		}
		if n > most {
			t.Errorf("%v: %v allocations, want %v at most", isolation, n, most)
		}
	}
}

// TestMemory holds what a lock object that is not in use needs, without the text of its key, and that a cache does not
// grow while ten times as many keys pass through it as it keeps. (Its map grows once more after it is full, as Go's maps
// do when keys come and go.) The goal for an object is 300 bytes; the limit is near what it needs today.
func TestMemory(t *testing.T) {
	const kept, most = 100_000, 345
	registry := newRegistry(t, fakedb.Open(), sqllock.Serializable)
	check.Must(t, registry.SetCacheCapacity(kept))
	keys := make([]string, 10*kept)
	for i := range keys {
		keys[i] = fmt.Sprintf("orders/%d", i)
	}
	empty := inUse()
	after := func(keys []string) float64 {
		for _, key := range keys {
			check.Must(t, check.ErrorOf(registry.Obtain(key)))
		}
		return inUse() - empty
	}
	full, half, end := after(keys[:kept]), after(keys[kept:5*kept]), after(keys[5*kept:])
	t.Logf("%.0f bytes for each object; %.1f MB when full, %.1f MB half-way, %.1f MB at the end", full/kept, full/1e6, half/1e6, end/1e6)
	if full/kept > most || end > 1.05*half || end > 1.5*full {
		t.Error("that is too much")
	}
	runtime.KeepAlive(keys)
	runtime.KeepAlive(registry)
}

// inUse returns the reachable memory in bytes.
func inUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkBare measures the calls of a pair with database/sql alone.
func BenchmarkBare(b *testing.B) {
	for _, isolation := range isolations {
		b.Run(isolation.String(), func(b *testing.B) {
			db := fakedb.Open()
			b.Cleanup(func() { db.Close() })
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				check.Must(b, bare(ctx, db, isolation))
			}
		})
	}
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func bare(ctx context.Context, db *sql.DB, isolation sqllock.Isolation) error {
	if err := bareAcquire(ctx, db, isolation); err != nil {
		return err
	}
	result, err := db.ExecContext(ctx, "DELETE", "region", "key", "holder")
	if err != nil {
		return err
	}
	_, err = result.RowsAffected()
	return err
}

func bareAcquire(ctx context.Context, db *sql.DB, isolation sqllock.Isolation) error {
	var answer int64
	acquire := func(q querier) error {
		return q.QueryRowContext(ctx, "INSERT", "region", "key", "holder", int64(10_000_000), int64(10_000_000)).Scan(&answer)
	}
	if isolation == sqllock.Autocommit {
		return acquire(db)
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return err
	}
	if err := acquire(tx); err != nil {
		return fmt.Errorf("acquire: %w, %w", err, tx.Rollback())
	}
	return tx.Commit()
}
