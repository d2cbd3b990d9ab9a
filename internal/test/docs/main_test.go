// Package docs_test holds the documents, the exported names and the promises to the source: what a
// document says must compile, lead somewhere, or have a test.
package docs_test

import (
	"os"
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

var must = check.Must

const module = "github.com/sqllock/sqllock"

// TestMain runs the tests in the repository's root, where the documents are.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	testmain.Run(m)
}
