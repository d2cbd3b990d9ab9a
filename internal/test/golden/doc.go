// Package golden compares the output of a test with a reviewed file in testdata. With the
// flag -update, go test writes the file first.
package golden
