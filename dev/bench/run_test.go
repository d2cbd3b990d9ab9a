package main

import (
	"slices"
	"testing"
)

func TestSelected(t *testing.T) {
	all := []string{"a/x", "a/y", "b/x"}
	same := func(name string) string { return name }
	if got := selected(all, []string{"a", "b/y"}, same); !slices.Equal(got, all[:2]) {
		t.Error(got)
	}
	if got := selected(all, nil, same); len(got) != len(all) {
		t.Errorf("%v of all", got)
	}
}
