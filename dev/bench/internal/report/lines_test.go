package report

import (
	"slices"
	"testing"

	"gonum.org/v1/plot/vg"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ heights, want []vg.Length }{
		{[]vg.Length{200, 100}, []vg.Length{200, 100}},
		{[]vg.Length{200, 199, 198}, []vg.Length{200, 190, 180}},
		{[]vg.Length{500, 500}, []vg.Length{300, 290}},
		{[]vg.Length{12, 11, 10}, []vg.Length{30, 20, 10}},
	} {
		if got := spread(c.heights, 10, 300); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.heights, got, c.want)
		}
	}
}

func TestHasLease(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"sqllock open/pgx": true, "pglock/pgx": true, "go-pglock/pq": false, "GET_LOCK": false, "spring 7/postgres": true, "redislock": true, "raw statements/pgx": false,
	} {
		if got := hasLease(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
