package main

import (
	"os"
	"path/filepath"

	"github.com/sqllock/sqllock/internal/test/dbtest/report"
)

// A collector is the file in which this run's tests report what was tested.
// Its zero value collects nothing.
type collector struct{ path string }

// newCollector leaves a report that somebody else collects to them.
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

// print shows the table on the standard error, since the standard output is
// the command's.
func (c collector) print() {
	if c.path == "" {
		return
	}
	cells, err := report.Read(c.path)
	if err == nil {
		err = report.Print(os.Stderr, cells)
	}
	if err != nil {
		say("report: %v", err)
	}
}
