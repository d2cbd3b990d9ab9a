package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                    "0s",
		1234 * time.Millisecond:              "1.2s",
		12345 * time.Millisecond:             "12s",
		61 * time.Second:                     "1m1s",
		time.Hour + 90*time.Second:           "1h2m",
		36 * time.Hour:                       "36h0m",
		72*time.Hour + time.Minute:           "3d",
		292 * 365 * 24 * time.Hour:           "106580d",
		9*time.Second + 999*time.Millisecond: "10s",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"orders/42":   "orders/42",
		"Grüße 世界":    "Grüße 世界",
		"a\tb":        `"a\tb"`,
		"\x1b[31mred": `"\x1b[31mred"`,
		"x\u202ey":    `"x\u202ey"`,
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	book := nameBook{"d5642a7a-3ff9-3c02-839e-0a4ee8b8f024": "orders/42"}
	rows := []rowView{
		viewOf(sqllock.Row{Region: "DEFAULT", LockKey: "d5642a7a-3ff9-3c02-839e-0a4ee8b8f024", Holder: "app-00000000001", Age: 12 * time.Second, Left: time.Minute}, book),
		viewOf(sqllock.Row{Region: "x\x1b[0m", LockKey: "0cc175b9-c0f1-36b6-831c-399e26977266", Age: time.Hour, Left: -time.Minute}, book),
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
		if err := writeTable(&out, rows, width); err != nil {
			t.Fatal(err)
		}
		if got := "\n" + out.String(); got != want {
			t.Errorf("width %d:%s", width, got)
		}
	}
	var out strings.Builder
	if err := writeTable(&out, nil, 80); err != nil || out.String() != "no locks\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
