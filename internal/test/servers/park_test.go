package servers_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// parkers are the packages whose Open parks the rows of busy keys.
var parkers = []string{"pgxlock", "pqlock"}

// eachParker runs a test for each of them, on the oldest and on the newest server, with and without serializable transactions.
func eachParker(t *testing.T, test func(t *testing.T, db *dbtest.DB, open func(openOptions) *sqllock.Registry)) {
	t.Helper()
	databases{server.Postgres: dbtest.Postgres, server.PostgresNewest: dbtest.PostgresNewest}.migrated(t, func(t *testing.T, db *dbtest.DB) {
		for _, name := range parkers {
			for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.ReadCommitted} {
				t.Run(fmt.Sprintf("%s, %v", name, isolation), func(t *testing.T) {
					db.DB.MustExec("TRUNCATE INT_LOCK")
					test(t, db, func(o openOptions) *sqllock.Registry {
						o.repository.Isolation = isolation
						return byName(t, name).opened(t, db.DSN, o)
					})
				})
			}
		}
	})
}

// parkedKeys returns the LOCK_KEY of the rows that are parked.
func parkedKeys(t *testing.T, db *dbtest.DB) (lockKeys []string) {
	t.Helper()
	must(t, db.DB.SelectContext(t.Context(), &lockKeys, "SELECT LOCK_KEY FROM INT_LOCK WHERE CLIENT_ID LIKE '%-k%' AND EXPIRED_AFTER < now() AT TIME ZONE 'UTC'"))
	return lockKeys
}

func parkedRows(t *testing.T, db *dbtest.DB) int {
	t.Helper()
	return len(parkedKeys(t, db))
}

// busy uses a lock until its row is parked, and as often as counts then, so that seconds without a release change nothing.
func busy(t *testing.T, db *dbtest.DB, registry *sqllock.Registry, key string) {
	t.Helper()
	lock, lockKey := obtain(t, registry, key), check.Value(sqllock.SpringKeys(key))(t)
	awaitThat(t, "the row of a busy key is parked", func() bool {
		for range 60 { // not looking: on a slow machine a key would never be busy
			once(t, lock.TryLock)
		}
		return slices.Contains(parkedKeys(t, db), lockKey)
	})
}

// A parked row is free to all, held by whoever takes it, and gone when its registry is closed.
func TestPark_Rows(t *testing.T) {
	t.Parallel()
	eachParker(t, func(t *testing.T, db *dbtest.DB, open func(openOptions) *sqllock.Registry) {
		ctx := t.Context()
		one, plain := open(openOptions{}), newRegistry(t, repository(t, db, nil), nil)
		mine, theirs := obtain(t, one, "k"), obtain(t, plain, "k")
		once(t, mine.TryLock)
		if n := parkedRows(t, db); n != 0 {
			t.Errorf("%d rows are parked of a key that was used once", n)
		}
		busy(t, db, one, "k")
		if counts := check.Value(repository(t, db, nil).Count(ctx))(t); counts["finished"] != 1 || counts["held"] != 0 || counts["expired"] != 0 {
			t.Errorf("with a parked row: %v", counts)
		}
		last := int64(0)
		rise := func(lease *sqllock.Lease) {
			t.Helper()
			if token := lease.Token(); token <= last {
				t.Errorf("the token %d comes after %d", token, last)
			} else {
				last = token
			}
		}
		take := func(lock *sqllock.JdbcLock, other *sqllock.JdbcLock) {
			t.Helper()
			lease := check.Value(lock.TryLock(ctx))(t)
			rise(lease)
			is(t, check.ErrorOf(other.TryLock(ctx)), sqllock.ErrNotAcquired)
			must(t, lease.Renew(ctx))
			must(t, lease.Unlock(ctx))
		}
		began := time.Now()
		take(mine, theirs) // the row is changed
		take(theirs, mine) // parked, and then deleted
		take(mine, theirs) // not there
		busyAgain := parkedRows(t, db)
		// A key is busy for ten seconds after busy. A test that takes longer notices less.
		stillBusy := time.Since(began) < 9*time.Second
		take(theirs, mine)
		if stillBusy && busyAgain != 1 {
			t.Errorf("%d rows are parked after the row was deleted by another process", busyAgain)
		}

		busy(t, db, one, "k")
		kept := check.Value(mine.WithMinHold(time.Hour).TryLock(ctx))(t)
		rise(kept)
		must(t, kept.Unlock(ctx))
		is(t, check.ErrorOf(theirs.TryLock(ctx)), sqllock.ErrNotAcquired)
		is(t, check.ErrorOf(mine.TryLock(ctx)), sqllock.ErrNotAcquired)
		db.DB.MustExec("DELETE FROM INT_LOCK")

		busy(t, db, one, "k")
		lost := check.Value(mine.TryLock(ctx))(t)
		tx := check.Value(db.DB.BeginTx(ctx, nil))(t)
		must(t, lost.Guard(ctx, tx))
		must(t, tx.Rollback())
		db.DB.MustExec("UPDATE INT_LOCK SET CLIENT_ID = 'c-k0123456789', EXPIRED_AFTER = TIMESTAMP '1970-01-01'") // parked by another one
		tx = check.Value(db.DB.BeginTx(ctx, nil))(t)
		is(t, lost.Guard(ctx, tx), sqllock.ErrLockLost)
		must(t, tx.Rollback())
		is(t, lost.Unlock(ctx), sqllock.ErrLockLost)
		db.DB.MustExec("DELETE FROM INT_LOCK")

		busy(t, db, one, "k")
		must(t, one.Close(ctx))
		if n := check.Value(repository(t, db, nil).Count(ctx))(t); n["finished"] != 0 {
			t.Errorf("after Close: %v", n)
		}
	})
}

// Callers of several processes have a lock one after the other, whether its row is parked, deleted or held, and their
// tokens rise.
func TestPark_Exclusion(t *testing.T) {
	t.Parallel()
	const keys, rounds = 3, 20
	eachParker(t, func(t *testing.T, db *dbtest.DB, open func(openOptions) *sqllock.Registry) {
		often := openOptions{registry: sqllock.RegistryOptions{IdleBetweenTries: 5 * time.Millisecond}}
		registries := []*sqllock.Registry{open(often), open(often), open(often), newRegistry(t, repository(t, db, nil), &often.registry)}
		for key := range keys {
			busy(t, db, registries[0], fmt.Sprint("k", key))
		}
		type section struct {
			holders atomic.Int32
			last    int64 // token
			n       int
		}
		sections := make([]section, keys)
		var working sync.WaitGroup
		for i := range 12 {
			working.Go(func() {
				for round := range rounds {
					key := (i + round) % keys
					lease, err := registries[i%len(registries)].Lock(t.Context(), fmt.Sprint("k", key))
					if err != nil {
						t.Error(err)
						return
					}
					s := &sections[key]
					if s.holders.Add(1) > 1 || lease.Token() <= s.last {
						t.Errorf("key %d: another one holds it, or token %d comes after %d", key, lease.Token(), s.last)
					}
					s.last, s.n = lease.Token(), s.n+1
					s.holders.Add(-1)
					if err := lease.Unlock(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		working.Wait()
		total := 0
		for i := range sections {
			total += sections[i].n
		}
		if total != 12*rounds {
			t.Errorf("%d of %d sections", total, 12*rounds)
		}
	})
}

// The release that parks a row wakes those who wait for it.
func TestPark_WakesWaiters(t *testing.T) {
	t.Parallel()
	eachParker(t, func(t *testing.T, db *dbtest.DB, open func(openOptions) *sqllock.Registry) {
		options := openOptions{wake: true, registry: sqllock.RegistryOptions{TTL: never, IdleBetweenTries: never}}
		one, other := open(options), open(options)
		busy(t, db, one, "k")
		lease := check.Value(one.TryLock(t.Context(), "k"))(t)
		got := make(chan error, 1)
		go func() {
			waited, err := other.Lock(t.Context(), "k")
			if err == nil {
				err = waited.Unlock(t.Context())
			}
			got <- err
		}()
		for len(other.Waiting()) == 0 {
			time.Sleep(time.Millisecond)
		}
		// real time: it listens meanwhile: if it is late, it reads that the row is free, and the test notices less
		time.Sleep(50 * time.Millisecond)
		must(t, lease.Unlock(t.Context()))
		must(t, <-got)
	})
}

// Where many keys are busy, none of them is parked.
func TestPark_ManyKeys(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.Postgres)
	registry := byName(t, "pgxlock").opened(t, db.DSN, openOptions{})
	use := func(keys int) {
		var working sync.WaitGroup
		for i := range keys {
			lock := obtain(t, registry, fmt.Sprint("k", i))
			working.Go(func() {
				for range 60 {
					lease, err := lock.TryLock(t.Context())
					if err == nil {
						err = lease.Unlock(t.Context())
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		working.Wait()
	}
	awaitThat(t, "the rows of three keys are parked", func() bool { use(3); return parkedRows(t, db) == 3 })
	awaitThat(t, "no row of twenty keys is parked", func() bool { use(20); return parkedRows(t, db) == 0 })
}

// Nothing is parked in a partitioned table, whose rows no statement for many would delete, nor if the table is not looked at.
func TestPark_WhereItCannotBe(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.Postgres)
	for _, statement := range []string{
		`CREATE TABLE P_LOCK (LOCK_KEY CHAR(36), REGION VARCHAR(100), CLIENT_ID CHAR(36) NOT NULL, CREATED_DATE TIMESTAMP NOT NULL,
			EXPIRED_AFTER TIMESTAMP NOT NULL, PRIMARY KEY (LOCK_KEY, REGION)) PARTITION BY LIST (REGION)`,
		`CREATE TABLE P_LOCK_A PARTITION OF P_LOCK DEFAULT`,
		`CREATE SEQUENCE P_LOCK_FENCE`,
	} {
		db.DB.MustExec(statement)
	}
	for table, of := range map[string]sqllock.RepositoryOptions{"P_LOCK": {Prefix: "P_"}, "INT_LOCK": {Layout: dialect.Spring7}} {
		lock := obtain(t, byName(t, "pgxlock").opened(t, db.DSN, openOptions{repository: of}), "k")
		for range 100 {
			once(t, lock.TryLock)
		}
		var n int
		must(t, db.DB.GetContext(t.Context(), &n, "SELECT COUNT(*) FROM "+table))
		if n != 0 {
			t.Errorf("%s has %d rows", table, n)
		}
	}
	lock := obtain(t, byName(t, "pgxlock").opened(t, db.DSN, openOptions{}), "fair").WithFair(true)
	for range 100 {
		once(t, lock.TryLock)
	}
	if n := parkedRows(t, db); n != 0 {
		t.Errorf("%d rows of fair locks are parked", n)
	}
}

// While an old snapshot keeps all versions of a row, those that are dead are not read: not by the statements that take and park
// it, read it or renew it. That they would be read is seen at those that insert and delete.
func TestPark_ReadsNoDeadVersions(t *testing.T) {
	t.Parallel()
	eachParker(t, func(t *testing.T, db *dbtest.DB, open func(openOptions) *sqllock.Registry) {
		ctx := t.Context()
		registry := open(openOptions{})
		db.DB.MustExecContext(ctx, "ALTER TABLE INT_LOCK SET (autovacuum_enabled = off)") // it would change plans and places meanwhile
		busy(t, db, registry, "k")
		snapshot := check.Value(db.DB.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead}))(t)
		defer func() { must(t, snapshot.Rollback()) }()
		must(t, check.ErrorOf(snapshot.ExecContext(ctx, "SELECT 1 FROM INT_LOCK")))
		// As many changes as of 3000 pairs, which a busy machine takes minutes for.
		db.DB.MustExecContext(ctx, `DO $$ DECLARE newest tid := (SELECT ctid FROM INT_LOCK);
			BEGIN
				FOR i IN 1..6000 LOOP
					UPDATE INT_LOCK SET CREATED_DATE = CREATED_DATE WHERE ctid = newest RETURNING ctid INTO newest;
				END LOOP;
			END $$`)
		busy(t, db, registry, "k") // if that took seconds, the key was busy no more
		session := check.Value(db.DB.Connx(ctx))(t)
		defer func() { must(t, session.Close()) }()
		must(t, check.ErrorOf(session.ExecContext(ctx, "SET enable_seqscan = off; SET jit = off")))
		texts := sqltext.Postgres().WithoutScans().Statements(dialect.Spring7, check.Value(sqltext.NamesFor(""))(t))
		var row struct {
			Key    string `db:"lock_key"`
			Holder string `db:"client_id"`
			Region string `db:"region"`
		}
		must(t, session.GetContext(ctx, &row, "SELECT lock_key, client_id, region FROM INT_LOCK"))
		rows := inJSON(t, []map[string]any{{"k": row.Key, "h": row.Holder, "l": 1}})
		values := map[string]any{
			"region": row.Region, "key": row.Key, "holder": row.Holder, "next": row.Holder, "left": 1, "ttl": 1, "rows": rows, "keys": inJSON(t, []string{row.Key}),
		}
		const few, many = 25, 75
		for name, text := range map[string]string{
			"Take": texts.Take, "TakeAll": texts.TakeAll, "Park": texts.Park, "ParkAll": texts.ParkAll, "Peek": texts.Peek, "PeekAll": texts.PeekAll,
			"DeleteAll": texts.DeleteAll,
		} {
			if n := pagesRead(t, session, text, values); n > few {
				t.Errorf("%s reads %d pages", name, n)
			}
		}
		for name, text := range map[string]string{"Acquire": texts.Acquire, "Delete": texts.Delete} {
			if n := pagesRead(t, session, text, values); n < many {
				t.Errorf("%s reads %d pages: the snapshot keeps nothing", name, n)
			}
		}
	})
}

// pagesRead returns how many pages a statement reads, or fewer: the least of some executions, because a change that finds no
// room beside the last version makes an entry in the index, and looks for others like it. They are undone, and what they
// leave fills the page: so another change, that stays, comes before each, and goes to the next page in time.
func pagesRead(t *testing.T, session *sqlx.Conn, text string, values map[string]any) (least int) {
	t.Helper()
	bound, args, err := sqlx.Named(text, values)
	must(t, err)
	for i := range 5 {
		must(t, check.ErrorOf(session.ExecContext(t.Context(), "UPDATE INT_LOCK SET CREATED_DATE = CREATED_DATE")))
		tx := check.Value(session.BeginTxx(t.Context(), nil))(t)
		var plan string
		must(t, tx.GetContext(t.Context(), &plan, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sqlx.Rebind(sqlx.DOLLAR, bound), args...))
		var parsed []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		must(t, json.Unmarshal([]byte(plan), &parsed))
		must(t, tx.Rollback())
		if n := parsed[0].Plan.Hit + parsed[0].Plan.Read; i == 0 || n < least {
			least = n
		}
	}
	return least
}
