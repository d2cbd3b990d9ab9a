package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/internal/test/check"
)

func TestFill(t *testing.T) {
	t.Parallel()
	const document = "prose\n<!-- bench:a -->\nold\n<!-- /bench -->\nmore\n<!-- bench:b -->\n<!-- /bench -->\n"
	got := check.Value(fill(document, "a", "new\n"))(t)
	if want := strings.Replace(document, "old", "new", 1); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	check.Equal(t, "got", check.Value(fill(document, "c", "new"))(t), document)
	check.Is(t, check.ErrorOf(fill("<!-- bench:a -->", "a", "new")), ErrMarker)
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]float64{"0.5": 0.5, "999.0": 999, "1 000.0": 1000, "1 234 567.9": 1234567.89, "-1 000.0": -1000} {
		check.Equal(t, "got", number(value, 1), want)
	}
}

func sample() *record.File {
	pairs := func(load, contender, database string, rates ...float64) record.Series {
		s := record.Series{Load: load, Contender: contender, Database: database}
		for _, rate := range rates {
			s.Rounds = append(s.Rounds, record.Round{
				Values:  map[string]float64{"pairs_per_s": rate, "p50_us": 1e6 / rate, "p99_us": 2e6 / rate, "connections": 2},
				Samples: []float64{rate, 2 * rate},
			})
		}
		return s
	}
	contender := func(name string) record.Contender { return record.Contender{Name: name, Library: "a library"} }
	contenders := []record.Contender{contender("sqllock autocommit/pq"), contender("sqllock autocommit/pgx"), contender("redislock")}
	return &record.File{Contenders: contenders, Series: []record.Series{
		pairs("pairs 1", "sqllock autocommit/pgx", "postgres", 900, 1000, 1100),
		pairs("pairs 1", "raw statements/pgx", "postgres", 1000, 1050, 1100),
		pairs("pairs 16", "raw statements/pgx", "postgres", 1060),
		pairs("pairs 64", "raw statements/pgx", "postgres", 1070),
		pairs("pairs 256", "raw statements/pgx", "postgres", 1080),
		pairs("pairs 64", "sqllock open/pgx", "postgres", 5000, 5001),
		pairs("pairs 64", "pglock/pgx", "postgres", 1000, 1001),
		pairs("pairs 64", "redislock, appendfsync always", "redis", 9000),
		pairs("hand-off", "sqllock autocommit/pgx", "postgres", 50),
		pairs("ten keys 1", "sqllock open/pgx", "postgres", 1200),
		pairs("ten keys 1", "sqllock open, single locks/pgx", "postgres", 200),
	}}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	document := filepath.Join(t.TempDir(), "performance.md")
	pictures := filepath.Join(filepath.Dir(document), "pictures")
	var empty strings.Builder
	for _, s := range sections {
		empty.WriteString(begin(s.name) + "\n" + end + "\n")
	}
	check.Must(t, os.WriteFile(document, []byte(empty.String()), 0o600))
	for range 2 { // the second finds what the first has made
		check.Must(t, Write(sample(), document, pictures))
	}
	text := check.Value(os.ReadFile(document))(t)
	for _, want := range []string{
		"**1 000** (900–1 100)", "5.00 × pglock/pgx", "(5 000/s, 9 000/s) | **missed** |", "| sqllock autocommit | pq, pgx |",
		"6.00 × sqllock open, single locks/pgx (1 200/s, 200/s) | met", "| sqllock open, single locks/pgx |  | 200 | 5 000 | 10 000 | – | – | – |", "pictures/bench-pairs.svg",
	} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("not once %q in:\n%s", want, text)
		}
	}
	if picture, err := os.ReadFile(filepath.Join(pictures, "bench-pairs.svg")); err != nil || !strings.Contains(string(picture), "<svg") {
		t.Errorf("no picture: %v", err)
	}
}

// TestDocuments: each section stands once in the documents that `make bench` and `make contention` fill, but for those
// that tell of the run, and they have no other.
func TestDocuments(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, document := range []string{"RESULTS.md", "CONTENTION.md"} {
		text := check.Value(os.ReadFile(filepath.Join("..", "..", document)))(t)
		all.Write(text)
	}
	runs := map[string]int{"contenders": 2, "machine": 2}
	for _, s := range sections {
		if n := strings.Count(all.String(), begin(s.name)); n != max(1, runs[s.name]) {
			t.Errorf("the documents have section %s %d times", s.name, n)
		}
	}
	check.Equal(t, "the documents have sections", strings.Count(all.String(), "<!-- bench:"), len(sections)+len(runs))
}
