package dbtest_test

import (
	"regexp"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest"
)

func TestFailedTestKeepsItsSchema(t *testing.T) {
	db := dbtest.Postgres(t)
	output, success := rerun(t, "TestRerunFails")
	if success {
		t.Error("a failed test counts as a success")
	}
	found := regexp.MustCompile(`the failed test's schema (\w+) stays`).FindStringSubmatch(output)
	if found == nil {
		t.Fatalf("the schema's name is not in:\n%s", output)
	}
	exec(t, db.DB, "DROP SCHEMA "+found[1]) // fails if it does not exist
}
