package browser_test

import (
	"context"

	"github.com/sqllock/sqllock/monitor/page"
)

// findings are what a host's checks may return.
func findings(context.Context) ([]page.Finding, error) {
	return []page.Finding{
		{Severity: page.Good, Subject: "server", Text: "SQLite 3.53.4"},
		{Severity: page.Good, Subject: "writes", Text: "accepted"},
		{
			Severity: page.Note, Subject: "clocks", Text: "the database's is 2.4s ahead of this host's",
			Advice: "locks do not compare clocks, so they work; synchronize both clocks with NTP",
		},
	}, nil
}
