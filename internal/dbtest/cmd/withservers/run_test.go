package main

import (
	"runtime"
	"testing"
)

func TestRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are a Unix shell's")
	}
	for name, test := range map[string]struct {
		command []string
		code    int
	}{
		"success":           {[]string{"--", "true"}, 0},
		"without dashes":    {[]string{"true"}, 0},
		"the command's own": {[]string{"--", "sh", "-c", "exit 7"}, 7},
		"ended by a signal": {[]string{"--", "sh", "-c", "kill -TERM $$"}, 128 + 15},
		"variables":         {[]string{"--", "sh", "-c", `test "$SQLLOCK_TEST_POSTGRES$SQLLOCK_TEST_MYSQL" = pm`}, 0},
		"signals passed on": {[]string{"--", "sh", "-c", `trap "exit 9" TERM; kill -TERM $PPID; while :; do sleep 0.01; done`}, 9},
		"no such command":   {[]string{"--", "sqllock-no-such-command"}, exitNotFound},
		"nothing to run":    {[]string{"--"}, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SQLLOCK_TEST_POSTGRES", "p")
			t.Setenv("SQLLOCK_TEST_MYSQL", "m")
			if code := run(test.command); code != test.code {
				t.Errorf("exit code %d, not %d", code, test.code)
			}
		})
	}
}

func TestRunWithoutServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("servers are started on Linux only")
	}
	for ci, code := range map[string]int{"": 0, "true": exitTrouble} {
		t.Run("CI="+ci, func(t *testing.T) {
			t.Setenv("SQLLOCK_TEST_POSTGRES", "p")
			t.Setenv("SQLLOCK_TEST_MYSQL", "")
			t.Setenv("CI", ci)
			t.Setenv("PATH", t.TempDir()) // no server, and no apt-get
			if got := run([]string{"--", "/bin/true"}); got != code {
				t.Errorf("exit code %d, not %d", got, code)
			}
		})
	}
}
