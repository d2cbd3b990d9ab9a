package server_test

import (
	"os"
	osexec "os/exec"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// inRerun is an environment variable that is set in the processes of rerun.
const inRerun = "SQLLOCK_TEST_IN_RERUN"

// rerun runs TestInRerun in another process, in which it may fail or be skipped. It returns the output and whether
// the test has succeeded.
func rerun(t *testing.T, environment ...string) (output string, success bool) {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInRerun$", "-test.v")
	cmd.Env = append(append(os.Environ(), inRerun+"=yes"), environment...)
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

func TestInRerun(t *testing.T) {
	if os.Getenv(inRerun) == "" {
		t.Skip("runs only as part of another test")
	}
	dbtest.Postgres(t)
}

func TestMissingServer(t *testing.T) {
	t.Parallel()
	const skipped, failed = "*** TESTS ARE SKIPPED: no PostgreSQL (postgres): SQLLOCK_TEST_POSTGRES is not set; run: go run ./internal/test/dbtest/cmd/withservers",
		"no PostgreSQL (postgres): SQLLOCK_TEST_POSTGRES is not set, and it must be tested"
	for _, test := range []struct{ ci, require, words string }{
		{ci: "", require: "", words: skipped},
		{ci: "true", require: "", words: failed},
		{ci: "true", require: "mysql", words: skipped},
		{ci: "", require: "mysql,postgres", words: failed},
		{ci: "", require: "postgress", words: `no such server: "postgress"`},
	} {
		t.Run("CI="+test.ci+" "+test.require, func(t *testing.T) {
			t.Parallel()
			output, success := rerun(t, "SQLLOCK_TEST_POSTGRES=", "CI="+test.ci, "SQLLOCK_REQUIRE="+test.require)
			if success != (test.words == skipped) || !strings.Contains(output, test.words) {
				t.Errorf("success is %t; want %q in:\n%s", success, test.words, output)
			}
		})
	}
}
