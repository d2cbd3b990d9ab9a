package main

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
)

func TestSelected(t *testing.T) {
	all := []string{"a/x", "a/y", "b/x"}
	same := func(name string) string { return name }
	check.Same(t, "got", selected(all, []string{"a", "b/y"}, same), all[:2])
	if got := selected(all, nil, same); len(got) != len(all) {
		t.Errorf("%v of all", got)
	}
}
