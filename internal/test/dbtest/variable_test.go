package dbtest_test

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest"
)

func TestMissingServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ci, require, outcome, words string
		succeeds                    bool
	}{
		{ci: "", require: "", outcome: "--- SKIP", words: "TESTS ARE SKIPPED", succeeds: true},
		{ci: "true", require: "", outcome: "--- FAIL", words: "must be tested"},
		{ci: "true", require: "mysql", outcome: "--- SKIP", words: "TESTS ARE SKIPPED", succeeds: true},
		{ci: "", require: "mysql,postgres", outcome: "--- FAIL", words: "must be tested"},
	} {
		t.Run("CI="+test.ci+" "+test.require, func(t *testing.T) {
			t.Parallel()
			output, success := rerun(t, "TestRerunWithoutServer",
				"SQLLOCK_TEST_POSTGRES=", "CI="+test.ci, "SQLLOCK_REQUIRE="+test.require)
			if success != test.succeeds {
				t.Errorf("success is %t", success)
			}
			for _, want := range []string{test.outcome, test.words, "no PostgreSQL (postgres)", "SQLLOCK_TEST_POSTGRES", "withservers"} {
				if !strings.Contains(output, want) {
					t.Errorf("no %q in:\n%s", want, output)
				}
			}
		})
	}
}

func TestUnknownRequirement(t *testing.T) {
	t.Parallel()
	output, success := rerun(t, "TestRerunWithoutServer", "SQLLOCK_TEST_POSTGRES=", "SQLLOCK_REQUIRE=postgress")
	if success || !strings.Contains(output, `no such server: "postgress"`) {
		t.Errorf("success is %t, output:\n%s", success, output)
	}
}

func TestMissing(t *testing.T) {
	t.Setenv("SQLLOCK_TEST_ORACLE_MYSQL", "")
	t.Setenv("SQLLOCK_TEST_MYSQL", "there")
	if why := dbtest.Missing("oracle-mysql"); !strings.Contains(why, "SQLLOCK_TEST_ORACLE_MYSQL is not set") {
		t.Errorf("%q does not name the variable", why)
	}
	for _, there := range []string{"mysql", "sqlite"} {
		if why := dbtest.Missing(there); why != "" {
			t.Errorf("%s is missing: %s", there, why)
		}
	}
}
