package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/dev/bench/internal/stats"
)

// A goal is a row of the table of goals.
type goal struct {
	what, want string
	// measure returns what was measured, and whether that is enough. known is
	// false if it was not measured.
	measure func(f *record.File) (got string, met, known bool)
}

// The contenders of the goals.
const (
	ourOpen        = "sqllock open/pgx"
	ourOpenMariaDB = "sqllock open/mysql"
	ourOpenOracle  = "sqllock open/mysql 9.7"
	wakeMariaDB    = "sqllock open with wake/mysql"
	wakeOracle     = "sqllock open with wake/mysql 9.7"
	ourDefault     = "sqllock serializable/pgx"
	ourAutocommit  = "sqllock autocommit/pgx"
	ourHandOff     = "sqllock hand-off/pgx"
	durableRedis   = "redislock, appendfsync always"
)

// bareLimit are the statements of one pair, prepared, and nothing else.
var bareLimit = map[string]string{
	ourOpen:        "raw statements, serializable/pgx",
	ourOpenMariaDB: "raw statements/mysql",
}

// notifyLimit are the same statements and a notification that wakes a waiter.
const notifyLimit = "raw statements, notify/pgx"

var goals = []goal{
	{"one worker, Open, PostgreSQL", "≥ 1.4 × the best SQL library with leases", timesBestRival("pairs 1", ourOpen, durable.Postgres, 1.4)},
	{"one worker, Open, MariaDB", "≥ 1.5 × Spring", timesBestRival("pairs 1", ourOpenMariaDB, durable.MariaDB, 1.5)},
	{"64 workers, Open, PostgreSQL", "≥ 6 × the best SQL library with leases", timesBestRival("pairs 64", ourOpen, durable.Postgres, 6)},
	{"64 workers, Open, MariaDB", "≥ 6 × Spring", timesBestRival("pairs 64", ourOpenMariaDB, durable.MariaDB, 6)},
	{"256 workers, Open, PostgreSQL", "≥ 9 × the best SQL library with leases", timesBestRival("pairs 256", ourOpen, durable.Postgres, 9)},
	{"256 workers, Open, MariaDB", "≥ 9 × Spring", timesBestRival("pairs 256", ourOpenMariaDB, durable.MariaDB, 9)},
	{"64 workers, Open", "ahead of a redislock that waits for its disk", timesRival("pairs 64", ourOpen, durableRedis, 1)},
	{"256 workers, Open", "ahead of a redislock that waits for its disk", timesRival("pairs 256", ourOpen, durableRedis, 1)},
	{"64 workers, a pool of one's own", "over ≤ 2 connections", atMost("pairs 64", ourDefault, "connections", "%.0f", 1, 2)},
	{"uncontended pair, Open, pgx", "≤ 1.15 × the raw statements", latency(ourOpen, "raw statements/pgx", 1.15)},
	{"uncontended pair, Open, lib/pq", "≤ 1.15 × the raw statements", latency("sqllock open/pq", "raw statements/pq", 1.15)},
	{"uncontended pair, Open, MariaDB", "≤ 1.25 × the raw statements", latency(ourOpenMariaDB, "raw statements/mysql", 1.25)},
	{"uncontended pair, Open, Oracle's MySQL", "≤ 1.3 × the raw statements", latency(ourOpenOracle, "raw statements/mysql 9.7", 1.3)},
	{"uncontended pair, Open, SQLite", "≤ 1.4 × the raw statements", latency("sqllock open/sqlite", "raw statements/sqlite", 1.4)},
	{"uncontended pair with Wake, MariaDB", "≤ 1.05 × without", latency(wakeMariaDB, ourOpenMariaDB, 1.05)},
	{"uncontended pair with Wake, Oracle's MySQL", "≤ 1.05 × without", latency(wakeOracle, ourOpenOracle, 1.05)},
	{"uncontended pair, Open, 1 ms between client and server", "p50 ≤ 3.3 ms", atMost("delay 1", ourOpen, "p50_us", "%.2f ms", 1e3, 3.3)},
	{"1 000 waiters, Open, PostgreSQL: the server's processor", "≤ 50 ms/s", atMost("waiters", ourOpen, "cpu_ms_per_s", "%.0f ms/s", 1, 50)},
	{"1 000 waiters, Open, MariaDB: the server's processor", "≤ 50 ms/s", atMost("waiters", ourOpenMariaDB, "cpu_ms_per_s", "%.0f ms/s", 1, 50)},
	{"hand-off between processes, without notify", "p50 ≤ 15 ms", handOffWithin(0.5, "", 15)},
	{"uncontended pair, Autocommit, pgx", "≤ 1.15 × the raw statements", latency(ourAutocommit, "raw statements/pgx", 1.15)},
	{"one key, 30 workers, 1 ms hold, with HandOff (the option is for this)", "total ≤ 1.2 × the holds", holds},
	{"hand-off between processes, p99, with notify", "≤ 5 ms", handOffWithin(0.99, "notify", 5)},
	{"hand-off between processes, p99, without", "≤ 35 ms", handOffWithin(0.99, "", 35)},
	{"hand-off with Wake, p50, MariaDB", "≤ 0.3 × without", handOffTimes(0.5, wakeMariaDB, ourOpenMariaDB, 0.3)},
	{"hand-off with Wake, p99, MariaDB", "≤ 0.4 × without", handOffTimes(0.99, wakeMariaDB, ourOpenMariaDB, 0.4)},
	{"hand-off with Wake, p50, Oracle's MySQL", "≤ 0.3 × without", handOffTimes(0.5, wakeOracle, ourOpenOracle, 0.3)},
	{"hand-off with Wake, p99, Oracle's MySQL", "≤ 0.4 × without", handOffTimes(0.99, wakeOracle, ourOpenOracle, 0.4)},
	{"1 000 waiters: WAL, row versions, log lines", "0, 0, 0", nothingWritten},
	{"ten keys, one worker, Open, PostgreSQL", "≥ 5 × the loop of single locks", timesRival("ten keys 1", ourOpen, "sqllock open, single locks/pgx", 5)},
	{"ten keys, one worker, Open, MariaDB", "≥ 5 × the loop of single locks", timesRival("ten keys 1", ourOpenMariaDB, "sqllock open, single locks/mysql", 5)},
}

func goalsTable(f *record.File) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"what", "goal", "measured", ""})
	for _, g := range goals {
		got, verdict := g.judge(f)
		t.AppendRow(table.Row{g.what, g.want, got, verdict})
	}
	return t.RenderMarkdown()
}

// judge returns what was measured, and whether that is enough; if not all runs agree, in how many
// of them it is.
func (g goal) judge(f *record.File) (got, verdict string) {
	got, met, known := g.measure(f)
	if !known {
		return missing, "not measured"
	}
	verdict = "**missed**"
	if met {
		verdict = "met"
	}
	agree := 0
	for _, run := range f.Runs {
		if _, alike, _ := g.measure(run); alike == met {
			agree++
		}
	}
	if agree < len(f.Runs) {
		verdict += fmt.Sprintf(", in %d of %d runs", agree, len(f.Runs))
	}
	return got, verdict
}

// of returns the median of a value; ok is false if there is none.
func of(f *record.File, load, contender, value string) (median float64, ok bool) {
	s, _ := f.Find(load, contender)
	values := s.Values(value)
	return stats.Summarize(values).Median, len(values) > 0
}

// rivals are the libraries on one kind of SQL database whose locks have leases.
func rivals(f *record.File, load, kind string) (best string, rate float64) {
	for _, s := range f.Under(load, kind) {
		if !strings.HasPrefix(s.Contender, "pglock") && !strings.HasPrefix(s.Contender, "spring") {
			continue
		}
		if r, ok := of(f, load, s.Contender, "pairs_per_s"); ok && r > rate {
			best, rate = s.Contender, r
		}
	}
	return best, rate
}

func timesBestRival(load, contender, kind string, times float64) func(*record.File) (string, bool, bool) {
	return func(f *record.File) (string, bool, bool) {
		best, _ := rivals(f, load, kind)
		return timesRival(load, contender, best, times)(f)
	}
}

func timesRival(load, contender, rival string, times float64) func(*record.File) (string, bool, bool) {
	return func(f *record.File) (string, bool, bool) {
		ours, ok := of(f, load, contender, "pairs_per_s")
		theirs, known := of(f, load, rival, "pairs_per_s")
		if !ok || !known || theirs == 0 {
			return "", false, false
		}
		got := fmt.Sprintf("%.2f × %s (%s/s, %s/s)", ours/theirs, rival, number(ours, 0), number(theirs, 0))
		met := ours >= times*theirs
		if limit, known := of(f, load, bareLimit[contender], "pairs_per_s"); known && !met && load == "pairs 1" {
			got += fmt.Sprintf("; limit, the bare statements: %s/s", number(limit, 0))
		}
		return got, met, true
	}
}

// atMost is a value that may be no more than that, in units of so many of the data's.
func atMost(load, contender, value, format string, unit, most float64) func(*record.File) (string, bool, bool) {
	return func(f *record.File) (string, bool, bool) {
		got, ok := of(f, load, contender, value)
		return fmt.Sprintf(format, got/unit), got/unit <= most, ok
	}
}

// latency compares medians of the time of a pair.
func latency(ours, limit string, most float64) func(*record.File) (string, bool, bool) {
	return func(f *record.File) (string, bool, bool) {
		a, okA := of(f, "pairs 1", ours, "p50_us")
		b, okB := of(f, "pairs 1", limit, "p50_us")
		if !okA || !okB {
			return "", false, false
		}
		return fmt.Sprintf("%.2f × (%.0f µs, %.0f µs)", a/b, a, b), a <= most*b, true
	}
}

func holds(f *record.File) (string, bool, bool) {
	ratio, ok := of(f, "hot key", ourHandOff, "total_per_holds")
	total, _ := of(f, "hot key", ourHandOff, "total_ms")
	got := fmt.Sprintf("%.2f × (%.0f ms)", ratio, total)
	if without, known := of(f, "hot key", ourDefault, "total_per_holds"); known {
		got += fmt.Sprintf("; by default %.2f ×", without)
	}
	return got, ratio <= 1.2, ok
}

// handOffWithin is a quantile of our slowest contender with the word in its name, or
// with none of those words if it is "". Beside a missed goal with notify stands the limit.
func handOffWithin(q float64, word string, most float64) func(*record.File) (string, bool, bool) {
	return func(f *record.File) (string, bool, bool) {
		slowest, name := 0.0, ""
		for _, s := range f.Under("hand-off", "") {
			ours := strings.HasPrefix(s.Contender, "sqllock") && strings.Contains(s.Contender, "notify") == (word != "")
			if took := handOffs(s, q); ours && took > slowest {
				slowest, name = took, s.Contender
			}
		}
		got, met := fmt.Sprintf("%.1f ms (%s)", slowest, name), slowest <= most
		if s, ok := f.Find("hand-off", notifyLimit); ok && !met && word != "" && len(s.Samples()) > 0 {
			got += fmt.Sprintf("; limit, bare statements: %.1f ms", handOffs(s, q))
		}
		return got, met, name != ""
	}
}

// handOffTimes compares quantiles of two contenders.
func handOffTimes(q float64, ours, than string, most float64) func(*record.File) (string, bool, bool) {
	return func(f *record.File) (string, bool, bool) {
		a, okA := f.Find("hand-off", ours)
		b, okB := f.Find("hand-off", than)
		if !okA || !okB || len(a.Samples()) == 0 || len(b.Samples()) == 0 {
			return "", false, false
		}
		x, y := handOffs(a, q), handOffs(b, q)
		return fmt.Sprintf("%.2f × (%.1f ms, %.1f ms)", x/y, x, y), x <= most*y, true
	}
}

// handOffs returns a quantile of the samples of all rounds, in milliseconds, or NaN if there are none.
func handOffs(s record.Series, q float64) float64 {
	return stats.Quantile(slices.Sorted(slices.Values(s.Samples())), q) / 1e3
}

func nothingWritten(f *record.File) (string, bool, bool) {
	wal, ok := of(f, "waiters", ourDefault, "wal_bytes_per_s")
	rows, _ := of(f, "waiters", ourDefault, "rows_written_per_s")
	lines, _ := of(f, "waiters", ourDefault, "log_lines_per_s")
	return fmt.Sprintf("%.0f bytes/s, %.0f/s, %.0f/s", wal, rows, lines), wal+rows+lines == 0, ok
}
