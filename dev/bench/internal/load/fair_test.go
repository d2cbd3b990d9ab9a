package load

import (
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/migrations"
)

// BenchmarkFair locks and unlocks free locks, with and without Fair, by one caller and by 32, over a network whose
// round trips take 20 ms longer, while 20 leases are renewed. ns/op of the two are to be compared:
//
//	go run ./internal/test/dbtest/cmd/withservers -- go -C dev/bench test -run '^$' -bench Fair -benchtime 2400x -count 3 ./internal/load
func BenchmarkFair(b *testing.B) {
	for _, variable := range []string{"SQLLOCK_TEST_POSTGRES", "SQLLOCK_TEST_MYSQL", "SQLLOCK_TEST_ORACLE_MYSQL"} {
		dsn := os.Getenv(variable)
		if dsn == "" {
			b.Logf("%s is not set", variable)
			continue
		}
		for _, callers := range []int{1, 32} {
			for _, fair := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/callers=%d/fair=%v", variable[len("SQLLOCK_TEST_"):], callers, fair), func(b *testing.B) {
					lockFreeLocks(b, openSlowly(b, dsn, fair), callers)
				})
			}
		}
	}
}

// openSlowly opens a registry over a slow network.
func openSlowly(b *testing.B, dsn string, fair bool) *sqllock.Registry {
	b.Helper()
	const roundTrip = 20 * time.Millisecond
	options := sqllock.RegistryOptions{TTL: 10 * time.Second, Fair: fair}
	var r *sqllock.Registry
	if u, err := url.Parse(dsn); err == nil && u.Scheme == "postgres" {
		slow := check.Value(slowly(u.Host, roundTrip))(b)
		b.Cleanup(slow.Stop)
		u.Host = slow.Listen
		r = check.Value(pgxlock.Open(b.Context(), u.String(), &pgxlock.Options{Migrate: migrations.Up, Registry: options}))(b)
	} else {
		config := check.Value(mysql.ParseDSN(dsn))(b)
		slow := check.Value(slowly(config.Addr, roundTrip))(b)
		b.Cleanup(slow.Stop)
		config.Addr = slow.Listen
		r = check.Value(mysqllock.Open(b.Context(), config.FormatDSN(), &mysqllock.Options{Migrate: migrations.Up, Registry: options}))(b)
	}
	return r
}

func lockFreeLocks(b *testing.B, r *sqllock.Registry, callers int) {
	b.Helper()
	for i := range 20 {
		check.Must(b, check.ErrorOf(r.Lock(b.Context(), fmt.Sprint("held ", i))))
	}
	var done atomic.Int64
	var working sync.WaitGroup
	b.ResetTimer()
	for c := range callers {
		working.Go(func() {
			for i := done.Add(1); i <= int64(b.N); i = done.Add(1) {
				lease, err := r.Lock(b.Context(), fmt.Sprint(c, "/", i))
				if err == nil {
					err = lease.Unlock(b.Context())
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
	b.StopTimer()
	if held := r.Held(); len(held) != 20 {
		b.Errorf("%d of 20 leases were kept", len(held))
	}
	check.Must(b, r.Close(b.Context()))
}
