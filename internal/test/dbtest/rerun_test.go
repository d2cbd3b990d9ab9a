package dbtest_test

import (
	"os"
	osexec "os/exec"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// inRerun is an environment variable that is set in the processes of rerun.
const inRerun = "SQLLOCK_TEST_IN_RERUN"

// rerun runs one test of this program in another process, in which it may fail or be
// skipped. It returns the output and whether the test has succeeded.
func rerun(t *testing.T, test string, environment ...string) (output string, success bool) {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), inRerun+"=yes"), environment...)
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

func onlyInRerun(t *testing.T) {
	t.Helper()
	if os.Getenv(inRerun) == "" {
		t.Skip("runs only as part of another test")
	}
}

func TestRerunWithoutServer(t *testing.T) {
	onlyInRerun(t)
	dbtest.Postgres(t)
}

func TestRerunFails(t *testing.T) {
	onlyInRerun(t)
	dbtest.Postgres(t)
	t.Fail()
}
