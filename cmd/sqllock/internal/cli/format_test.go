package cli

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
)

func TestDuration(t *testing.T) {
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
		if got := format.Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}
