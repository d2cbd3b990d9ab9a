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

// TestRoot makes the cache of go test notice a page that has changed: the log of what tests open begins after TestMain, so
// the cache would look for the pages in this directory. It is not parallel, so that it runs before the others.
func TestRoot(t *testing.T) { t.Chdir(".") }
