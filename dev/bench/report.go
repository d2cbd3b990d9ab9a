package main

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/dev/bench/internal/report"
)

func runReport(_ context.Context, arguments []string) error {
	set := flags("report")
	in := set.String("in", "bench.json", "the raw data; of several runs of the same loads, with commas in between")
	var documents []string
	set.Func("doc", "a document to fill; repeat it for several", func(path string) error {
		documents = append(documents, path)
		return nil
	})
	pictures := set.String("pictures", "pictures", "the directory for plots")
	if err := set.Parse(arguments); err != nil {
		return err
	}
	f, err := readRuns(words(*in))
	if err != nil {
		return err
	}
	for _, document := range documents {
		if err := report.Write(f, document, *pictures); err != nil {
			return err
		}
	}
	return nil
}

// readRuns reads the files of one run or several, and joins them.
func readRuns(paths []string) (*record.File, error) {
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w: -in names no file", errUsage)
	}
	var runs []*record.File
	for _, path := range paths {
		run, err := record.Read(path)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return record.Join(runs)
}
