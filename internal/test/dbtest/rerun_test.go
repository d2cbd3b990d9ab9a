package dbtest_test

import (
	"os"
	osexec "os/exec"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// inRerun is set in the processes that rerun starts.
const inRerun = "SQLLOCK_TEST_IN_RERUN"

// rerun runs one test of this program in another process, where it may fail or be
// skipped, and returns what was printed and whether it was a success.
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
		t.Skip("runs as part of another test only")
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
