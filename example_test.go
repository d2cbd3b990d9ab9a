package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cleanup"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/migrations"
)

// From a database to a lock. With PostgreSQL or MySQL only the driver, the DSN
// and the dialect differ, and `sqllock migrate up` creates the table once.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sqllock")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := migrations.Up(ctx, db, dialect.SQLite(), nil); err != nil {
		log.Fatal(err)
	}

	repository, err := sqllock.NewRepository(ctx, db, dialect.SQLite(), nil)
	if err != nil {
		log.Fatal(err)
	}
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: 30 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer registry.Close(ctx)

	lease, err := registry.Lock(ctx, "orders/42")
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := lease.Unlock(ctx); err != nil { // ErrLockLost, if the lease was lost
			log.Print(err)
		}
	}()

	fmt.Println("working on", lease.Key())
	// Output: working on orders/42
}

func ExampleRegistry_ExecuteLocked() {
	registry, closeAll := fixture.Example("")
	defer closeAll()

	err := registry.ExecuteLocked(context.Background(), "nightly", func(ctx context.Context) error {
		fmt.Println("the only one")
		return ctx.Err() // not nil if the lease was lost meanwhile
	})
	fmt.Println(err)
	// Output:
	// the only one
	// <nil>
}

// Inside ExecuteLocked, LeaseFrom returns the lease. Anywhere else it checks that the
// caller works under the lock. It sends nothing to the database.
func ExampleRegistry_LeaseFrom() {
	registry, closeAll := fixture.Example("")
	defer closeAll()
	write := func(ctx context.Context) error { // must run under the lock
		lease, err := registry.LeaseFrom(ctx, "report")
		if err != nil {
			return err
		}
		fmt.Println("written with token", lease.Token() > 0)
		return nil
	}

	ctx := context.Background()
	fmt.Println(errors.Is(write(ctx), sqllock.ErrNotHeld))
	fmt.Println(registry.ExecuteLocked(ctx, "report", write))
	// Output:
	// true
	// written with token true
	// <nil>
}

// At most one run in 15 seconds over all instances, by ExecuteLocked.
func ExampleJdbcLock_ExecuteLockedFor() {
	registry, closeAll := fixture.Example("")
	defer closeAll()
	lock, _ := registry.Obtain("every 15 s")

	for range 2 {
		err := lock.WithMinHold(15*time.Second).ExecuteLockedFor(context.Background(), 0, func(context.Context) error {
			fmt.Println("run")
			return nil
		})
		fmt.Println(errors.Is(err, sqllock.ErrNotAcquired))
	}
	// Output:
	// run
	// false
	// true
}

// Only the leases of this lock are renewed automatically.
func ExampleJdbcLock_WithAutoRenew() {
	ctx := context.Background()
	registry, closeAll := fixture.Example("")
	defer closeAll()
	lock, _ := registry.Obtain("import")

	lease, err := lock.WithAutoRenew(true).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("as long as it takes:", lease.Context().Err() == nil)
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// as long as it takes: true
	// <nil>
}

// A try that fails says who holds the lock.
func ExampleJdbcLock_TryLock() {
	ctx := context.Background()
	registry, closeAll := fixture.Example("")
	defer closeAll()
	lock, _ := registry.Obtain("orders/42")
	lease, _ := lock.Lock(ctx)

	_, err := lock.TryLock(ctx)
	var held *sqllock.HeldError
	if errors.As(err, &held) {
		fmt.Println(held.Key, held.Holder == lease.Holder(), held.Left > 0)
	}
	fmt.Println(errors.Is(err, sqllock.ErrNotAcquired))
	// Output:
	// orders/42 true true
	// true
}

// A caller that locks with the lease's context enters the same lock again.
func ExampleLease_Context() {
	ctx := context.Background()
	registry, closeAll := fixture.Example("")
	defer closeAll()
	lock, _ := registry.Obtain("orders/42")
	outer, _ := lock.Lock(ctx)

	inner, err := lock.Lock(outer.Context())
	fmt.Println("again:", err)
	_, err = lock.TryLock(ctx)
	fmt.Println("another owner:", errors.Is(err, sqllock.ErrNotAcquired))

	_ = inner.Unlock(ctx)
	fmt.Println("still held:", outer.Context().Err() == nil)
	_ = outer.Unlock(ctx)
	// Output:
	// again: <nil>
	// another owner: true
	// still held: true
}

// Work that may take longer than the time-to-live renews its lease, and stops when
// it learns that the lease is lost.
func ExampleLease_Renew() {
	ctx := context.Background()
	registry, closeAll := fixture.Example("")
	defer closeAll()
	lock, _ := registry.Obtain("import")
	lease, _ := lock.Lock(ctx)

	for page := range 3 {
		if err := lease.Renew(ctx); err != nil {
			fmt.Println("stop:", err) // ErrLockLost: another holder may be at work
			return
		}
		fmt.Println("page", page)
	}
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// page 0
	// page 1
	// page 2
	// <nil>
}

// One step takes longer than the others: it gets its time beforehand.
func ExampleLease_RenewFor() {
	ctx := context.Background()
	registry, closeAll := fixture.Example("")
	defer closeAll()
	lock, _ := registry.Obtain("import")
	lease, _ := lock.Lock(ctx)

	if err := lease.RenewFor(ctx, 10*time.Minute); err != nil {
		fmt.Println("stop:", err)
		return
	}
	_ = lease.Renew(ctx) // takes nothing back
	fmt.Println(time.Until(lease.Deadline()) > 9*time.Minute)
	fmt.Println(lease.Unlock(ctx)) // releases at once
	// Output:
	// true
	// <nil>
}

// At most one run in 15 seconds over all instances, however short the run.
func ExampleJdbcLock_WithMinHold() {
	ctx := context.Background()
	registry, closeAll := fixture.Example("")
	defer closeAll()
	lock, _ := registry.Obtain("every 15 s")

	for range 2 {
		lease, err := lock.WithMinHold(15 * time.Second).TryLock(ctx)
		if err != nil {
			fmt.Println("not yet:", errors.Is(err, sqllock.ErrNotAcquired))
			continue
		}
		fmt.Println("run")
		_ = lease.Unlock(ctx)
	}
	// Output:
	// run
	// not yet: true
}

// A register is a storage outside of the database that refuses the writes of a holder
// that has lost the lock and does not know it yet.
type register struct {
	highest int64
	value   string
}

func (r *register) write(token int64, value string) error {
	if token < r.highest {
		return fmt.Errorf("%q comes too late", value)
	}
	r.highest, r.value = token, value
	return nil
}

// Each holder's token is higher than all earlier ones, so a storage can refuse the
// writes of an earlier holder.
func ExampleLease_Token() {
	ctx := context.Background()
	registry, closeAll := fixture.Example("")
	defer closeAll()
	lock, _ := registry.Obtain("report")
	var storage register

	first, _ := lock.WithTTL(time.Second).WithAutoRenew(false).Lock(ctx)
	<-first.Context().Done() // it was stopped for longer than its time-to-live

	second, _ := lock.Lock(ctx)
	fmt.Println("second:", storage.write(second.Token(), "new"))
	fmt.Println("first:", storage.write(first.Token(), "old"))
	fmt.Println(storage.value)
	_ = second.Unlock(ctx)
	// Output:
	// second: <nil>
	// first: "old" comes too late
	// new
}

// A transaction that commits only if the lock is held when it does.
func ExampleRegistry_ExecuteLockedTx() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sqllock")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := migrations.Up(ctx, db, dialect.SQLite(), nil); err != nil {
		log.Fatal(err)
	}
	repository, err := sqllock.NewRepository(context.Background(), db, dialect.SQLite(), nil)
	if err != nil {
		log.Fatal(err)
	}
	registry, err := sqllock.NewRegistry(repository, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer registry.Close(ctx)
	if _, err := db.ExecContext(ctx, "CREATE TABLE account (id INTEGER, balance INTEGER); INSERT INTO account VALUES (42, 100)"); err != nil {
		log.Fatal(err)
	}

	err = registry.ExecuteLockedTx(ctx, "account/42", db, nil, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 10 WHERE id = 42")
		return err
	})
	var balance int
	fmt.Println(err, db.QueryRowContext(ctx, "SELECT balance FROM account").Scan(&balance), balance)
	// Output: <nil> <nil> 90
}

// A goroutine that cleans up, and a single call that does a part of it.
func ExampleRegistry_ExpireUnusedOlderThan() {
	registry, closeAll := fixture.Example("")
	defer closeAll()

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cleanup.Run(ctx, registry, &cleanup.Options{Interval: time.Minute, Age: time.Hour})
	}()
	stop()
	<-ended

	for key := range 3 {
		_, _ = registry.Obtain(fmt.Sprint(key))
	}
	forgotten, err := registry.ExpireUnusedOlderThan(0)
	fmt.Println(forgotten, err)
	// Output: 3 <nil>
}

func ExampleSpringKeys() {
	for _, key := range []string{"orders/42", "7B0A2F5C-3C57-4F43-9E7C-0B0F6D1F2A3B"} {
		lockKey, _ := sqllock.SpringKeys(key)
		fmt.Println(lockKey)
	}
	_, err := sqllock.SpringKeys("")
	fmt.Println(err)
	// Output:
	// d5642a7a-3ff9-3c02-839e-0a4ee8b8f024
	// 7b0a2f5c-3c57-4f43-9e7c-0b0f6d1f2a3b
	// sqllock: invalid argument: the key is empty
}
