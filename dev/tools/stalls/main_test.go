//go:build linux

package main

import (
	"os"
	"testing"
	"time"
)

// TestRun runs commands, as root where cgroup v2 is mounted.
func TestRun(t *testing.T) {
	g, err := newGroup()
	if err != nil {
		t.Skipf("needs root and cgroup v2: %v", err)
	}
	if err := g.remove(); err != nil {
		t.Fatal(err)
	}
	code, err := run([]string{"sh", "-c", "sleep 1000 & exit 3"}, 2*time.Millisecond, 2*time.Millisecond)
	if code != 3 || err != nil {
		t.Errorf("exit code %d, %v, want 3", code, err)
	}
	if _, err := os.Stat(string(g)); !os.IsNotExist(err) {
		t.Errorf("the group is left: %v", err)
	}
}
