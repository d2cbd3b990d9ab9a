package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// contests has a table for each contest, with a row for each kind of callers, and the plot of one.
func contests(f *record.File, pictures, beside string) (string, error) {
	var text strings.Builder
	for _, load := range contestsOf(f) {
		fmt.Fprintf(&text, "\n### %s\n\n%s\n", load, contestTable(f.Under(load, "")))
		if load != contender.OneLock {
			continue
		}
		if err := plotWaits(f, picture(pictures, "waits")); err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "\n![how long calls wait](%s/bench-waits.svg)\n", beside)
	}
	if text.Len() == 0 {
		return notMeasured, nil
	}
	return text.String(), nil
}

func contestsOf(f *record.File) []string {
	var loads []string
	for _, s := range f.Series {
		if len(kindsOf(s)) > 0 && !slices.Contains(loads, s.Load) {
			loads = append(loads, s.Load)
		}
	}
	return loads
}

// kindsOf returns the kinds of callers of a contest.
func kindsOf(s record.Series) []string {
	kinds := make(map[string]bool)
	for _, round := range s.Rounds {
		for name := range round.Values {
			if kind, _, found := strings.Cut(name, "/longest_ms"); found {
				kinds[kind] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

func contestTable(series []record.Series) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "on", "callers", "acquisitions/s", "wait: p50, ms", "p99, ms", "longest, ms", "least share", "overtaken"})
	for _, s := range series {
		for _, kind := range kindsOf(s) {
			cell := func(value string, digits int) string {
				return column{value: kind + "/" + value, digits: digits}.cell(s)
			}
			longest := cell("longest_ms", 0)
			if len(s.Values(kind+"/waits_on")) > 0 {
				longest = "≥ " + longest
			}
			t.AppendRow(table.Row{
				s.Contender, titles[s.Database], kind, cell("per_s", 0), cell("p50_ms", 0), cell("p99_ms", 0), longest,
				cell("least_share", 2), cell("overtaken", 0),
			})
		}
	}
	return t.RenderMarkdown()
}

// plotWaits draws how long the calls for one lock have waited.
func plotWaits(f *record.File, path string) error {
	c := comparison{
		title: contender.OneLock + ": so many calls waited at most", unit: "milliseconds",
		marks: []string{"50 of 100", "90 of 100", "99 of 100", "999 of 1 000"},
	}
	for _, s := range f.Under(contender.OneLock, "") {
		c.addTimes(s, 0.5, 0.9, 0.99, 0.999)
	}
	return c.save(path, func(a, b row) int { return cmp.Compare(a.values[2], b.values[2]) })
}
