package contender_test

import (
	"testing"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
)

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, c := range contender.All() {
		if seen[c.Name] {
			t.Errorf("two contenders are called %q", c.Name)
		}
		seen[c.Name] = true
		if c.Library == "" || c.Database == "" || c.Open == nil {
			t.Errorf("%q is not complete", c.Name)
		}
	}
}

func TestEnters(t *testing.T) {
	t.Parallel()
	c := contender.Contender{Only: []string{"pairs", "delay 1"}, Cannot: map[string]string{"pairs 64": "why"}}
	for load, want := range map[string]bool{"pairs 1": true, "pairs 64": false, "delay 1": true, "delay 16": false, "delay 64": false, "waiters": false} {
		if got := c.Enters(load, false); got != want {
			t.Errorf("%s: %t", load, got)
		}
	}
	for load, want := range map[string]bool{"pairs 1": false, "permits 8": true, "ten keys 1": false} {
		if got := (contender.Contender{Also: []string{"permits"}}).Enters(load, true); got != want {
			t.Errorf("%s, which takes those that name it: %t", load, got)
		}
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	all := []contender.Contender{{Name: "a/x"}, {Name: "a/y"}, {Name: "b/x"}}
	if got := contender.Select(all, []string{"a", "b/y"}); len(got) != 2 {
		t.Errorf("%d selected", len(got))
	}
	if got := contender.Select(all, nil); len(got) != 3 {
		t.Errorf("%d of all", len(got))
	}
}
