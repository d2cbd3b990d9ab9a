// Package durations reads what "go test -json" prints, prints what "go test" would, and lists
// the slowest tests.
package durations
