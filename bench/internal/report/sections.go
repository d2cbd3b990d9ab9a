package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sqllock/sqllock/bench/internal/durable"
	"github.com/sqllock/sqllock/bench/internal/record"
	"github.com/sqllock/sqllock/bench/internal/stats"
)

// A section is one part of the document: pictures is the directory for its
// plots, beside the way there from the document.
type section struct {
	name, title string
	make        func(f *record.File, pictures, beside string) (string, error)
}

var sections = []section{
	{"goals", "Goals", plain(goalsTable)},
	{"machine", "Where it was measured", plain(machine)},
	{"contenders", "Who was measured", plain(contenders)},
	{"pairs", "Acquire and release, distinct keys", pairs},
	{"delay", "The same with one millisecond between client and server", plain(delayed)},
	{"wire", "What a pair costs on the wire", plain(wire)},
	{"hot-key", "One key, thirty workers in one process, each holds it for 1 ms", plain(hotKey)},
	{"hand-off", "One key, two processes", handOff},
	{"waiters", "A thousand waiters", plain(waiters)},
	{"renewal", "Renewing ten thousand leases", plain(renewal)},
	{"memory", "Memory", plain(memory)},
}

func plain(text func(*record.File) string) func(*record.File, string, string) (string, error) {
	return func(f *record.File, _, _ string) (string, error) { return text(f), nil }
}

var kinds = []string{durable.Postgres, durable.MariaDB, durable.SQLite, durable.File, durable.Redis, durable.RedisAlways}

func machine(f *record.File) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", ""})
	t.AppendRows([]table.Row{
		{"machine", fmt.Sprintf("%s, %d cores, %s", f.Machine.CPU, f.Machine.Cores, f.Machine.Memory)},
		{"system", fmt.Sprintf("%s, %s, %s", f.Machine.System, f.Machine.Kernel, f.Machine.Disk)},
		{"command", "`" + f.Command + "`"},
		{"when", fmt.Sprintf("%s, for %s", f.Started.Format("2006-01-02 15:04 MST"), f.Took)},
		{"rounds", fmt.Sprintf("%d of %s after %s of warming up; contenders take turns", f.Settings.Rounds, f.Settings.Measure, f.Settings.Warm)},
		{"connections", fmt.Sprintf("at most %d each, unless said", f.Settings.Connections)},
	})
	for _, name := range slices.Sorted(maps.Keys(f.Versions)) {
		if f.Versions[name] != "" {
			t.AppendRow(table.Row{name, f.Versions[name]})
		}
	}
	return t.RenderMarkdown()
}

func contenders(f *record.File) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "library", "version", "on", "settings"})
	for _, c := range f.Contenders {
		t.AppendRow(table.Row{c.Name, c.Library, c.Version, c.Database, c.Settings})
	}
	return t.RenderMarkdown()
}

// pairs has a table and a plot for each database.
func pairs(f *record.File, pictures, beside string) (string, error) {
	var text strings.Builder
	text.WriteString("Pairs per second: the median of the rounds, and the extremes; p50 and p99 of one pair's time with one worker and with 64.\n")
	for _, kind := range kinds {
		names := contendersUnder(f, kind)
		if len(names) == 0 {
			continue
		}
		fmt.Fprintf(&text, "\n### %s\n\n%s\n", kind, pairsTable(f, names))
		name := "pairs-" + kind
		if err := plotPairs(f, kind, picture(pictures, name)); err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "\n![pairs per second on %s](%s/bench-%s.svg)\n", kind, beside, name)
	}
	return text.String(), nil
}

func pairsTable(f *record.File, names []string) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "1 worker", "16", "64", "256", "1 worker: p50, p99 µs", "64: p50, p99 µs", "connections"})
	for _, name := range names {
		row := table.Row{name}
		for _, w := range workers {
			row = append(row, cellOf(f, w.load, name, column{value: "pairs_per_s"}))
		}
		for _, load := range []string{"pairs 1", "pairs 64"} {
			row = append(row, median(f, load, name, "p50_us")+", "+median(f, load, name, "p99_us"))
		}
		t.AppendRow(append(row, median(f, "pairs 64", name, "connections")))
	}
	return t.RenderMarkdown()
}

func cellOf(f *record.File, load, contender string, c column) string {
	s, ok := f.Find(load, contender)
	if !ok {
		return "–"
	}
	return c.cell(s)
}

func median(f *record.File, load, contender, value string) string {
	s, _ := f.Find(load, contender)
	values := s.Values(value)
	if len(values) == 0 {
		return "–"
	}
	return number(stats.Summarize(values).Median, 0)
}

func delayed(f *record.File) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "1 worker: pairs/s", "p50 µs", "64 workers: pairs/s", "p50 µs"})
	names := make([]string, 0, len(f.Contenders))
	for _, s := range append(f.Under("delay 1", ""), f.Under("delay 64", "")...) {
		if !slices.Contains(names, s.Contender) {
			names = append(names, s.Contender)
		}
	}
	for _, name := range names {
		t.AppendRow(table.Row{
			name,
			cellOf(f, "delay 1", name, column{value: "pairs_per_s"}), median(f, "delay 1", name, "p50_us"),
			cellOf(f, "delay 64", name, column{value: "pairs_per_s"}), median(f, "delay 64", name, "p50_us"),
		})
	}
	return t.RenderMarkdown()
}

func wire(f *record.File) string {
	return markdown(f.Under("wire", ""), []column{
		{title: "statements", value: "statements_per_pair", digits: 1},
		{title: "round trips", value: "round_trips_per_pair", digits: 1},
	})
}

func hotKey(f *record.File) string {
	return markdown(f.Under("hot key", ""), []column{
		{title: "total, ms", value: "total_ms", digits: 1},
		{title: "holds alone, ms", value: "holds_ms", digits: 1},
		{title: "total / holds", value: "total_per_holds", digits: 2},
		{title: "of 30 done", value: "done"},
		{title: "connections", value: "connections"},
	})
}

// handOff puts the samples of all rounds together: a round has too few for a
// 99th percentile.
func handOff(f *record.File, pictures, beside string) (string, error) {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "hand-offs", "p50, ms", "p90, ms", "p99, ms", "max, ms"})
	for _, s := range f.Under("hand-off", "") {
		sorted := slices.Sorted(slices.Values(s.Samples()))
		row := table.Row{s.Contender, len(sorted)}
		for _, q := range []float64{0.5, 0.9, 0.99, 1} {
			row = append(row, quantileCell(s, sorted, q))
		}
		t.AppendRow(row)
	}
	if t.Length() == 0 {
		return "*not measured*", nil
	}
	if err := plotHandOff(f, picture(pictures, "hand-off")); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\n\n![hand-off between processes](%s/bench-hand-off.svg)", t.RenderMarkdown(), beside), nil
}

func quantileCell(s record.Series, sorted []float64, q float64) string {
	limits := s.Values("limit_ms")
	switch {
	case len(limits) > 0:
		return "> " + number(limits[0], 0)
	case len(sorted) == 0:
		return "–"
	default:
		return number(stats.Quantile(sorted, q)/1e3, 2)
	}
}

func waiters(f *record.File) string {
	return markdown(f.Under("waiters", ""), []column{
		{title: "server's CPU, ms/s", value: "cpu_ms_per_s"},
		{title: "WAL, bytes/s", value: "wal_bytes_per_s"},
		{title: "row versions/s", value: "rows_written_per_s"},
		{title: "log lines/s", value: "log_lines_per_s"},
		{title: "holders alone: CPU", value: "holders_cpu_ms_per_s"},
		{title: "WAL", value: "holders_wal_bytes_per_s"},
	})
}

func renewal(f *record.File) string {
	return markdown(f.Under("renewal", ""), []column{
		{title: "leases", value: "leases"},
		{title: "together, ms", value: "together_ms"},
		{title: "one UPDATE each, 16 at a time, ms", value: "each_ms"},
	})
}

func memory(f *record.File) string {
	return markdown(f.Under("memory", ""), []column{
		{title: "bytes for an idle lock object", value: "bytes_per_object"},
		{title: "MB when the cache is full", value: "full_mb", digits: 1},
		{title: "MB after five times as many keys", value: "half_mb", digits: 1},
		{title: "MB after ten times as many", value: "end_mb", digits: 1},
	})
}
