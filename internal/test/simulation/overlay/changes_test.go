package main

import (
	"strings"
	"testing"
)

func TestAChangeFitsOnce(t *testing.T) {
	t.Parallel()
	c := change{"time.go", "rand", "chance"}
	if changed, err := c.apply("t.rand = 1"); err != nil || changed != "t.chance = 1" {
		t.Error(changed, err)
	}
	for source, times := range map[string]string{"": "0 times", "rand, rand": "2 times"} {
		if _, err := c.apply(source); err == nil || !strings.Contains(err.Error(), times) {
			t.Errorf("%q: %v", source, err)
		}
	}
}
