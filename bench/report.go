package main

import (
	"context"

	"github.com/sqllock/sqllock/bench/internal/record"
	"github.com/sqllock/sqllock/bench/internal/report"
)

func runReport(_ context.Context, arguments []string) error {
	set := flags("report")
	in := set.String("in", "bench.json", "the raw data")
	document := set.String("doc", "performance.md", "the document to fill; made if it is not there")
	pictures := set.String("pictures", "pictures", "the directory for plots")
	if err := set.Parse(arguments); err != nil {
		return err
	}
	f, err := record.Read(*in)
	if err != nil {
		return err
	}
	return report.Write(f, *document, *pictures)
}
