package main

import (
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"withservers": main}) }

// TestScripts runs the scripts of testdata. They begin with the variables of all servers, so that none is started, and
// without all others of this program.
func TestScripts(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("servers are started on Linux only, and the commands are a Unix shell's")
	}
	testscript.Run(t, testscript.Params{Dir: "testdata", RequireExplicitExec: true, Setup: func(env *testscript.Env) error {
		for _, kind := range server.Kinds {
			if kind.Variable != "" {
				env.Setenv(kind.Variable, kind.Name)
			}
		}
		for _, variable := range []string{"CI", server.RequireVariable, server.ServersVariable, server.InstallVariable, server.ReportVariable} {
			env.Setenv(variable, "")
		}
		env.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise each program sleeps for a second before it exits
		return nil
	}})
}
