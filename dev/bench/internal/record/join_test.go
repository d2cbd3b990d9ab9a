package record_test

import (
	"testing"

	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/internal/test/check"
)

func run(contender string, values ...float64) *record.File {
	s := record.Series{Load: "pairs 1", Contender: contender}
	for _, v := range values {
		s.Rounds = append(s.Rounds, record.Round{Values: map[string]float64{"p50_us": v}})
	}
	return &record.File{Took: "1m30s", Series: []record.Series{s}}
}

func TestJoinHasTheRoundsOfAllRuns(t *testing.T) {
	t.Parallel()
	first, second := run("a", 1, 2), run("a", 3)
	joined := check.Value(record.Join([]*record.File{first, second}))(t)
	s, _ := joined.Find("pairs 1", "a")
	check.Same(t, "got", s.Values("p50_us"), []float64{1, 2, 3})
	if len(first.Series[0].Rounds) != 2 || len(joined.Runs) != 2 || joined.Took != "3m0s in 2 runs" {
		t.Errorf("%+v, %q", first.Series, joined.Took)
	}
}

func TestJoinRefusesRunsOfOtherContenders(t *testing.T) {
	t.Parallel()
	check.Is(t, check.ErrorOf(record.Join([]*record.File{run("a", 1), run("b", 1)})), record.ErrDiffer)
}
