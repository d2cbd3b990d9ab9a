package show

import (
	"bytes"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/golden"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// TestTable writes a table on a wide and on a narrow terminal, and one without locks.
func TestTable(t *testing.T) {
	known := state.KnownKeys{"d5642a7a-3ff9-3c02-839e-0a4ee8b8f024": "orders/42"}
	rows := []rowView{
		viewOf(sqllock.Row{Region: "DEFAULT", LockKey: "d5642a7a-3ff9-3c02-839e-0a4ee8b8f024", Holder: "app-00000000001", Age: 12 * time.Second, Left: time.Minute}, known),
		viewOf(sqllock.Row{Region: "x\x1b[0m", LockKey: "0cc175b9-c0f1-36b6-831c-399e26977266", Age: time.Hour, Left: -time.Minute}, known),
	}
	var out bytes.Buffer
	check.Must(t, writeTable(&out, rows, 200))
	check.Must(t, writeTable(&out, rows, 100))
	check.Must(t, writeTable(&out, nil, 80))
	golden.Check(t, "testdata/tables.txt", out.String())
}
