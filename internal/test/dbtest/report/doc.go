// Package report collects from all processes of a test run what was tested on which database.
// Test programs append cells to a file, and the program that has started them prints them as
// a table.
package report
