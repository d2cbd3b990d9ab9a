package main

import (
	"os"
	"path/filepath"

	"github.com/sqllock/sqllock/internal/test/dbtest/report"
)

// A collector is the file to which the tests of this run append cells. The zero value collects
// nothing.
type collector struct{ path string }

// newCollector returns the zero value if the caller of this program collects a report.
func newCollector(dir string) collector {
	if os.Getenv(report.Variable) != "" {
		return collector{}
	}
	return collector{filepath.Join(dir, "report")}
}

func (c collector) environment() []string {
	if c.path == "" {
		return nil
	}
	return []string{report.Variable + "=" + c.path}
}

// print prints the table to the standard error, since the standard output belongs to the
// command.
func (c collector) print() {
	if c.path == "" {
		return
	}
	all, err := report.Read(c.path)
	if err == nil {
		err = report.Print(os.Stderr, all)
	}
	if err != nil {
		say("report: %v", err)
	}
}
