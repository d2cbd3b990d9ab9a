package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/dev/bench/internal/stats"
)

// A section is one part of the document: pictures is the directory for its
// plots, beside the way there from the document.
type section struct {
	name string
	make func(f *record.File, pictures, beside string) (string, error)
}

var sections = []section{
	{"goals", plain(goalsTable)},
	{"machine", plain(machine)},
	{"contenders", plain(contenders)},
	{"pairs", pairs},
	{"delay", plain(delayed)},
	{"hot-key", plain(hotKey)},
	{"hand-off", handOff},
	{"waiters", plain(waiters)},
	{"ten-keys", plain(tenKeys)},
	{"contests", contests},
}

func plain(text func(*record.File) string) func(*record.File, string, string) (string, error) {
	return func(f *record.File, _, _ string) (string, error) { return text(f), nil }
}

var titles = map[string]string{
	durable.Postgres: "PostgreSQL", durable.MariaDB: "MariaDB", durable.OracleMySQL: "Oracle's MySQL", durable.SQLite: "SQLite", durable.Files: "files",
	durable.Redis: "Redis", durable.RedisAlways: "Redis, appendfsync always", durable.Etcd: "etcd",
}

// missing is in the cell of what was not measured.
const missing = "–"

func machine(f *record.File) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", ""})
	t.AppendRows([]table.Row{
		{"machine", fmt.Sprintf("%s, %d cores, %s of memory", f.Machine.CPU, f.Machine.Cores, gigabytes(f.Machine.Memory))},
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

// gigabytes makes what Linux tells of its memory readable.
func gigabytes(text string) string {
	var kilobytes float64
	if _, err := fmt.Sscanf(text, "%g kB", &kilobytes); err != nil {
		return text
	}
	return fmt.Sprintf("%.0f GB", kilobytes*1024/1e9)
}

// families are databases that share tables.
var families = []struct {
	title string
	kinds []string
}{
	{titles[durable.Postgres], []string{durable.Postgres}},
	{titles[durable.MariaDB], []string{durable.MariaDB}},
	{titles[durable.OracleMySQL], []string{durable.OracleMySQL}},
	{"SQLite, and files", []string{durable.SQLite, durable.Files}},
	{titles[durable.Redis], []string{durable.Redis, durable.RedisAlways}},
}

// pairs has a picture of all contenders, and two tables for each family.
func pairs(f *record.File, pictures, beside string) (string, error) {
	var text strings.Builder
	for _, some := range families {
		if names := contendersUnder(f, some.kinds); len(names) > 0 {
			fmt.Fprintf(&text, "\n### %s\n\n%s\n\n%s\n", some.title, ratesTable(f, names), timesTable(f, names))
		}
	}
	if err := plotPairs(f, picture(pictures, "pairs")); err != nil {
		return "", err
	}
	return fmt.Sprintf("![pairs per second of all contenders](%s/bench-pairs.svg)\n%s", beside, text.String()), nil
}

func ratesTable(f *record.File, names []string) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"pairs per second", "1 worker", "16 workers", "64 workers", "256 workers", "connections for 64"})
	for _, name := range names {
		row := table.Row{name}
		for _, w := range workers {
			row = append(row, cellOf(f, w, name, column{value: "pairs_per_s"}))
		}
		t.AppendRow(append(row, median(f, "pairs 64", name, "connections")))
	}
	return t.RenderMarkdown()
}

func timesTable(f *record.File, names []string) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"time of a pair, µs", "1 worker: p50", "p99", "64 workers: p50", "p99"})
	for _, name := range names {
		row := table.Row{name}
		for _, load := range []string{"pairs 1", "pairs 64"} {
			row = append(row, median(f, load, name, "p50_us"), median(f, load, name, "p99_us"))
		}
		t.AppendRow(row)
	}
	return t.RenderMarkdown()
}

func cellOf(f *record.File, load, contender string, c column) string {
	s, ok := f.Find(load, contender)
	if !ok {
		return missing
	}
	return c.cell(s)
}

func median(f *record.File, load, contender, value string) string {
	s, _ := f.Find(load, contender)
	values := s.Values(value)
	if len(values) == 0 {
		return missing
	}
	return number(stats.Summarize(values).Median, 0)
}

// delayed and tenKeys have a row for each contender, and for each load how often it was done and how long it took.
func delayed(f *record.File) string {
	return steps(f, table.Row{"", "on", "1 worker: pairs/s", "p50, µs", "64 workers: pairs/s", "p50, µs"},
		[]string{"delay 1", "delay 64"}, []string{"p50_us"})
}

func tenKeys(f *record.File) string {
	return steps(f, table.Row{"ten keys per second", "on", "1 worker", "p50, µs", "p99, µs", "16 workers", "p50, µs", "p99, µs"},
		[]string{"ten keys 1", "ten keys 16"}, []string{"p50_us", "p99_us"})
}

func steps(f *record.File, header table.Row, loads, times []string) string {
	t := table.NewWriter()
	t.AppendHeader(header)
	for _, contender := range under(f, loads, func(record.Series) bool { return true }) {
		row := table.Row{contender, titles[databaseOf(f, contender)]}
		for _, load := range loads {
			row = append(row, cellOf(f, load, contender, column{value: "pairs_per_s"}))
			for _, value := range times {
				row = append(row, median(f, load, contender, value))
			}
		}
		t.AppendRow(row)
	}
	if t.Length() == 0 {
		return notMeasured
	}
	return t.RenderMarkdown()
}

func databaseOf(f *record.File, contender string) string {
	for _, c := range f.Contenders {
		if c.Name == contender {
			return c.Database
		}
	}
	return ""
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
	t.AppendHeader(table.Row{"", "on", "hand-offs", "p50, ms", "p90, ms", "p99, ms", "max, ms"})
	for _, s := range f.Under("hand-off", "") {
		sorted := slices.Sorted(slices.Values(s.Samples()))
		row := table.Row{s.Contender, titles[s.Database], number(float64(len(sorted)), 0)}
		for _, q := range []float64{0.5, 0.9, 0.99, 1} {
			row = append(row, quantileCell(s, sorted, q))
		}
		t.AppendRow(row)
	}
	if t.Length() == 0 {
		return notMeasured, nil
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
		return missing
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
		{title: "holders alone: WAL", value: "holders_wal_bytes_per_s"},
	})
}
