package dbtest

import "os"

// AllVariable is the environment variable that asks for the full run: the whole matrix of
// servers, drivers and settings, and the slow tests of the tests' own helpers.
const AllVariable = "SQLLOCK_TEST_ALL"

// All reports whether this is the full run, as make test-all starts it.
func All() bool { return os.Getenv(AllVariable) != "" }
