package record_test

import (
	"testing"

	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

func series(load, contender string, value float64) record.Series {
	return record.Series{Load: load, Contender: contender, Rounds: []record.Round{{Values: map[string]float64{"x": value}}}}
}

// The series of the part replace those of the same load and contender, and the others stay.
func TestAdd(t *testing.T) {
	t.Parallel()
	earlier := &record.File{
		Took: "17m0s", Command: "all", Contenders: []record.Contender{{Name: "a", Version: "1"}, {Name: "b"}},
		Series: []record.Series{series("pairs", "a", 1), series("pairs", "b", 2), series("keys", "a", 3)},
	}
	f := &record.File{
		Took: "1m0s", Command: "some", Contenders: []record.Contender{{Name: "a", Version: "2"}, {Name: "c"}},
		Series: []record.Series{series("keys", "a", 4), series("keys", "c", 5)},
	}
	if err := f.Add(earlier); err != nil {
		t.Fatal(err)
	}
	if f.Took != "18m0s" || len(f.Series) != 4 || len(f.Contenders) != 3 {
		t.Fatal(f.Took, f.Series, f.Contenders)
	}
	for _, want := range []record.Series{series("pairs", "a", 1), series("pairs", "b", 2), series("keys", "a", 4), series("keys", "c", 5)} {
		got, ok := f.Find(want.Load, want.Contender)
		if !ok || got.Values("x")[0] != want.Values("x")[0] {
			t.Errorf("%s of %s: %v", want.Load, want.Contender, got)
		}
	}
	if len(earlier.Series) != 3 {
		t.Error("the earlier run was changed:", earlier.Series)
	}
	if err := (&record.File{Took: "long"}).Add(earlier); err == nil {
		t.Error("a time that cannot be read")
	}
}
