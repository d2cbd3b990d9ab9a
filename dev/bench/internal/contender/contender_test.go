package contender_test

import (
	"testing"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
)

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	for _, all := range [][]contender.Contender{contender.All(), contender.Contestants()} {
		seen := make(map[string]bool)
		for _, c := range all {
			if seen[c.Name] {
				t.Errorf("two contenders are called %q", c.Name)
			}
			seen[c.Name] = true
			if c.Library == "" || c.Database == "" || c.Open == nil {
				t.Errorf("%q is not complete", c.Name)
			}
		}
	}
}

func TestEnters(t *testing.T) {
	t.Parallel()
	c := contender.Contender{Loads: []string{"pairs", "delay 1"}}
	for load, want := range map[string]bool{"pairs 1": true, "pairs 64": true, "delay 1": true, "delay 16": false, "delay 64": false, "waiters": false} {
		if got := c.Enters(load); got != want {
			t.Errorf("%s: %t", load, got)
		}
	}
}
