package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/dev/bench/internal/stats"
)

// A column shows one value of a series.
type column struct {
	title, value string
	digits       int // behind the point
}

// notMeasured stands where a table would be.
const notMeasured = "*not measured*"

// markdown is a table of series under one load, a row each.
func markdown(series []record.Series, columns []column) string {
	if len(series) == 0 {
		return notMeasured
	}
	t := table.NewWriter()
	head := table.Row{"", "on"}
	for _, c := range columns {
		head = append(head, c.title)
	}
	t.AppendHeader(head)
	for _, s := range series {
		row := table.Row{s.Contender, titles[s.Database]}
		for _, c := range columns {
			row = append(row, c.cell(s))
		}
		t.AppendRow(row)
	}
	return t.RenderMarkdown()
}

// cell is the median, and the extremes if they tell something.
func (c column) cell(s record.Series) string {
	summary := stats.Summarize(s.Values(c.value))
	switch {
	case summary.N == 0 && s.Failure() != "":
		return "failed"
	case summary.N == 0:
		return missing
	}
	text := number(summary.Median, c.digits)
	low, high := number(summary.Min, c.digits), number(summary.Max, c.digits)
	if low == high {
		return text
	}
	return fmt.Sprintf("**%s** (%s–%s)", text, low, high)
}

// number has blanks between thousands.
func number(value float64, digits int) string {
	text := fmt.Sprintf("%.*f", digits, value)
	whole, rest, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	var groups []string
	for len(whole) > 3 {
		groups = append([]string{whole[len(whole)-3:]}, groups...)
		whole = whole[:len(whole)-3]
	}
	text = sign + strings.Join(append([]string{whole}, groups...), " ")
	if rest != "" {
		text += "." + rest
	}
	return text
}

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
