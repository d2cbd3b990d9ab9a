package show

import (
	"bytes"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/golden"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// TestTable writes a table on a wide and on a narrow terminal, and one without locks.
func TestTable(t *testing.T) {
	table := []sqllock.Row{
		{Region: "DEFAULT", LockKey: "d5642a7a-3ff9-3c02-839e-0a4ee8b8f024", Key: "orders/42", Holder: "app-00000000001", Age: 12 * time.Second, Left: time.Minute},
		{Region: "x\x1b[0m", LockKey: "0cc175b9-c0f1-36b6-831c-399e26977266", Age: time.Hour, Left: -time.Minute},
	}
	rows := viewsOf(listing.Named(table, nil))
	seat := listing.Lock{Row: table[0], Key: "9e5f0bb3-3034-3d58-8b9e-30d338d6ab6d permit 0", Seat: listing.Seat{Key: "render", Kind: "permit", Number: "0"}}
	rows = append(rows, viewOf(seat))
	var out bytes.Buffer
	check.Must(t, writeTable(&out, rows, 200))
	check.Must(t, writeTable(&out, rows, 100))
	check.Must(t, writeTable(&out, nil, 80))
	table[1].Process = sqllock.Process{Host: "web-7", PID: 4711, Application: "orders", Version: "1.4.2"}
	for _, width := range []int{200, 150, 100} {
		check.Must(t, writeTable(&out, viewsOf(listing.Named(table, nil)), width))
	}
	rows = viewsOf(listing.Named(table, nil))
	addWaiters([]sqllock.Waiter{
		{Region: "DEFAULT", LockKey: table[0].LockKey, ClientID: "app", Waited: 45 * time.Second, Callers: 2},
		{Region: "DEFAULT", LockKey: table[0].LockKey, ClientID: "web", Waited: 9 * time.Second, Callers: 1},
		{Region: "other", LockKey: table[0].LockKey, ClientID: "web", Waited: time.Hour, Callers: 1},
	}, rows)
	check.Must(t, writeTable(&out, rows, 200))
	golden.Check(t, "testdata/tables.txt", out.String())
}
