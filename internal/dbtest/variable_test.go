package dbtest_test

import (
	"strings"
	"testing"
)

func TestMissingServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ci, outcome, words string
		succeeds           bool
	}{
		{ci: "", outcome: "--- SKIP", words: "IS NOT SET: TESTS ARE SKIPPED", succeeds: true},
		{ci: "true", outcome: "--- FAIL", words: "CI must test all databases"},
	} {
		t.Run("CI="+test.ci, func(t *testing.T) {
			t.Parallel()
			output, success := rerun(t, "TestRerunWithoutServer", "SQLLOCK_TEST_POSTGRES=", "CI="+test.ci)
			if success != test.succeeds {
				t.Errorf("success is %t", success)
			}
			for _, want := range []string{test.outcome, test.words, "SQLLOCK_TEST_POSTGRES", "withservers"} {
				if !strings.Contains(output, want) {
					t.Errorf("no %q in:\n%s", want, output)
				}
			}
		})
	}
}
