package show

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/state"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

func TestTable(t *testing.T) {
	known := state.KnownKeys{"d5642a7a-3ff9-3c02-839e-0a4ee8b8f024": "orders/42"}
	rows := []rowView{
		viewOf(sqllock.Row{Region: "DEFAULT", LockKey: "d5642a7a-3ff9-3c02-839e-0a4ee8b8f024", Holder: "app-00000000001", Age: 12 * time.Second, Left: time.Minute}, known),
		viewOf(sqllock.Row{Region: "x\x1b[0m", LockKey: "0cc175b9-c0f1-36b6-831c-399e26977266", Age: time.Hour, Left: -time.Minute}, known),
	}
	for width, want := range map[int]string{
		200: `
┌───────────┬──────────────────────────────────────┬────────────┬─────────────────┬──────────┬────────────────┬─────────┐
│ KEY       │ LOCK KEY                             │ REGION     │ HOLDER          │ ACQUIRED │ TIME LEFT      │ STATE   │
├───────────┼──────────────────────────────────────┼────────────┼─────────────────┼──────────┼────────────────┼─────────┤
│ orders/42 │ d5642a7a-3ff9-3c02-839e-0a4ee8b8f024 │ DEFAULT    │ app-00000000001 │ 12s ago  │ 1m0s           │ held    │
│ -         │ 0cc175b9-c0f1-36b6-831c-399e26977266 │ "x\x1b[0m" │ -               │ 1h0m ago │ ended 1m0s ago │ expired │
└───────────┴──────────────────────────────────────┴────────────┴─────────────────┴──────────┴────────────────┴─────────┘
`,
		100: `
┌──────────────────────────────────────┬────────────┬─────────────────┬──────────┬────────────────┬─────────┐
│ KEY                                  │ REGION     │ HOLDER          │ ACQUIRED │ TIME LEFT      │ STATE   │
├──────────────────────────────────────┼────────────┼─────────────────┼──────────┼────────────────┼─────────┤
│ orders/42                            │ DEFAULT    │ app-00000000001 │ 12s ago  │ 1m0s           │ held    │
│ 0cc175b9-c0f1-36b6-831c-399e26977266 │ "x\x1b[0m" │ -               │ 1h0m ago │ ended 1m0s ago │ expired │
└──────────────────────────────────────┴────────────┴─────────────────┴──────────┴────────────────┴─────────┘
`,
	} {
		var out bytes.Buffer
		check.Must(t, writeTable(&out, rows, width))
		if got := "\n" + out.String(); got != want {
			t.Errorf("width %d:%s", width, got)
		}
	}
	var out strings.Builder
	if err := writeTable(&out, nil, 80); err != nil || out.String() != "no locks\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
