package show

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

// A script may cut the seconds off at the point.
func TestSecondsOrDash(t *testing.T) {
	t.Parallel()
	days := 12.5 * 24 * 3600
	check.Equal(t, "twelve days and a half", secondsOrDash(&days), "1080000")
	check.Equal(t, "no time", secondsOrDash(nil), "-")
}
