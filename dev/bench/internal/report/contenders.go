package report

import (
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// A way is how a library was set up, whatever the driver.
type way struct{ name, library, version, settings string }

// contenders has a row for each way.
func contenders(f *record.File) string {
	var ways []way
	with := make(map[way][]string)
	for _, c := range f.Contenders {
		name, driver := parts(c)
		w := way{name, c.Library, c.Version, c.Settings}
		if with[w] == nil {
			ways = append(ways, w)
		}
		with[w] = append(with[w], driver)
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "with", "library", "version", "settings"})
	for _, w := range ways {
		t.AppendRow(table.Row{w.name, strings.Join(with[w], ", "), w.library, w.version, w.settings})
	}
	return t.RenderMarkdown()
}

// parts takes the driver off the end of a contender's name. If there is none, its
// database is told.
func parts(c record.Contender) (name, driver string) {
	if name, driver, found := strings.Cut(c.Name, "/"); found {
		return name, driver
	}
	return c.Name, titles[c.Database]
}

// under returns the names of those who were in some of the loads, in the order of
// the contenders.
func under(f *record.File, loads []string, wanted func(record.Series) bool) []string {
	var names []string
	for _, load := range loads {
		for _, s := range f.Under(load, "") {
			if wanted(s) && !slices.Contains(names, s.Contender) {
				names = append(names, s.Contender)
			}
		}
	}
	place := func(name string) int {
		return slices.IndexFunc(f.Contenders, func(c record.Contender) bool { return c.Name == name })
	}
	slices.SortStableFunc(names, func(a, b string) int { return place(a) - place(b) })
	return names
}
