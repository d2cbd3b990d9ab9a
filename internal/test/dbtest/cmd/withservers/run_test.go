package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest/report"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// withOwnServers sets the variables of all servers, so that none is started, and clears all
// other variables of this program.
func withOwnServers(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are a Unix shell's")
	}
	for _, kind := range server.Kinds {
		if kind.Variable != "" {
			t.Setenv(kind.Variable, kind.Name)
		}
	}
	for _, variable := range []string{"CI", server.RequireVariable, server.ServersVariable, server.InstallVariable, report.Variable} {
		t.Setenv(variable, "")
	}
}

func TestRun(t *testing.T) {
	const waits = `trap "exit 9" TERM; kill -TERM $PPID; while :; do sleep 0.01; done`
	ran := filepath.Join(t.TempDir(), "file")
	for name, test := range map[string]struct {
		command []string
		code    int
	}{
		"success, without dashes":    {[]string{"true"}, 0},
		"the command's own":          {[]string{"--", "sh", "-c", "exit 7"}, 7},
		"ended by a signal":          {[]string{"--", "sh", "-c", "kill -TERM $$"}, 128 + 15},
		"variables":                  {[]string{"--", "sh", "-c", `test "$SQLLOCK_TEST_POSTGRES+$SQLLOCK_TEST_ORACLE_MYSQL" = postgres+oracle-mysql`}, 0},
		"nothing runs after signals": {[]string{"-then", "touch " + ran, "--", "sh", "-c", waits}, 9},
		"no such command":            {[]string{"--", "sqllock-no-such-command"}, exitNotFound},
		"nothing to run":             {[]string{"--"}, exitUsage},
		"unknown flag":               {[]string{"-unknown", "--", "true"}, exitUsage},
		"no second command":          {[]string{"-then", " ", "--", "true"}, exitUsage},
		"the second fails":           {[]string{"-then", "true", "-then", "false", "--", "true"}, 1},
		"both fail":                  {[]string{"-then", "false", "--", "sh", "-c", "exit 7"}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			withOwnServers(t)
			if code := run(test.command); code != test.code {
				t.Errorf("exit code %d, not %d", code, test.code)
			}
		})
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next command has run: %v", err)
	}
	for _, variable := range []string{server.RequireVariable, server.ServersVariable} {
		withOwnServers(t)
		t.Setenv(variable, "mysql,postgress")
		if code := run([]string{"--", "true"}); code != exitUsage {
			t.Errorf("an unknown name in %s: exit code %d, not %d", variable, code, exitUsage)
		}
	}
}

func TestRunWithoutServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("servers are started on Linux only")
	}
	for name, test := range map[string]struct {
		missing, ci, require, servers string
		code                          int
	}{
		"local":                    {"mysql", "", "", "", 0},
		"in CI":                    {"mysql", "true", "", "", exitFailure},
		"in CI, one that may lack": {"oracle-mysql", "true", "", "", 0},
		"named":                    {"oracle-mysql", "", "sqlite,oracle-mysql", "", exitFailure},
		"others named":             {"mysql", "true", "oracle-mysql", "", 0},
		"left out":                 {"pgbouncer", "", "", "mysql", 0},
		"left out, but named":      {"pgbouncer", "", "pgbouncer", "mysql", exitFailure},
	} {
		t.Run(name, func(t *testing.T) {
			withOwnServers(t)
			t.Setenv(server.KindOf(test.missing).Variable, "")
			t.Setenv("CI", test.ci)
			t.Setenv("SQLLOCK_REQUIRE", test.require)
			t.Setenv("SQLLOCK_SERVERS", test.servers)
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("PATH", t.TempDir()) // without programs to install or download anything
			var code int
			told := stderrOf(t, func() { code = run([]string{"--", "/bin/true"}) })
			if code != test.code {
				t.Errorf("exit code %d, not %d", code, test.code)
			}
			if boxes := strings.Count(told, "("+test.missing+"): ITS TESTS ARE SKIPPED"); code == 0 && boxes != 2 {
				t.Errorf("%d boxes, not one before and one after, in:\n%s", boxes, told)
			}
		})
	}
}

// TestReport: the table is printed after a failure, too, unless the caller collects the cells.
func TestReport(t *testing.T) {
	const command = `echo '{"Server": "sqlite", "Layout": "five columns", "Run": 12345}' >>"$SQLLOCK_TEST_REPORT"; exit 3`
	for _, file := range []string{"", filepath.Join(t.TempDir(), "theirs")} {
		withOwnServers(t)
		t.Setenv(report.Variable, file)
		told := stderrOf(t, func() {
			if code := run([]string{"sh", "-c", command}); code != 3 {
				t.Errorf("exit code %d, not 3", code)
			}
		})
		if strings.Contains(told, "12345") != (file == "") {
			t.Errorf("with the file %q:\n%s", file, told)
		}
	}
}

// stderrOf returns what f writes to the standard error.
func stderrOf(t *testing.T, f func()) string {
	t.Helper()
	read, write, err := os.Pipe()
	check.Must(t, err)
	defer read.Close()
	stderr := os.Stderr
	os.Stderr = write
	defer func() { os.Stderr = stderr }()
	var text bytes.Buffer
	copied := make(chan error)
	go func() {
		_, err := io.Copy(&text, read)
		copied <- err
	}()
	f()
	write.Close()
	check.Must(t, <-copied)
	return text.String()
}
