package names

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/stmt"
)

func TestTTL_IsKnownOrNothingIsSaid(t *testing.T) {
	t.Parallel()
	const s = time.Second
	kinds := func(all ...time.Duration) (of []leaseKind) {
		for _, ttl := range all {
			of = append(of, leaseKindOf(max(ttl, -ttl), ttl > 0))
		}
		return of
	}
	for name, c := range map[string]struct {
		age, left time.Duration
		kinds     []leaseKind
		want      time.Duration
	}{
		"renewed lately":                          {60 * s, 9 * s, kinds(10 * s), 10 * s},
		"not renewed for long":                    {60 * s, s, kinds(10 * s), 10 * s},
		"never renewed":                           {8 * s, 2 * s, kinds(10 * s), 10 * s},
		"nothing is known":                        {60 * s, 9 * s, nil, 0},
		"it lasts longer":                         {60 * s, 11 * s, kinds(10 * s), 0},
		"it cannot have lasted as long":           {4 * s, 2 * s, kinds(10 * s), 0},
		"one of two, by what is left":             {300 * s, 50 * s, kinds(10*s, 60*s), 60 * s},
		"one of two, by its age":                  {20 * s, 5 * s, kinds(10*s, 60*s), 10 * s},
		"one of two, but which":                   {300 * s, 5 * s, kinds(10*s, 60*s), 0},
		"not renewed at all":                      {8 * s, 2 * s, kinds(-10 * s), 0},
		"renewed or not":                          {8 * s, 2 * s, kinds(10*s, -10*s), 0},
		"one that is renewed by hand may have it": {60 * s, 2 * s, kinds(10*s, -61*s), 0},
		"too young":                               {2 * s, 8 * s, kinds(10 * s), 0},
		"expired":                                 {60 * s, -s, kinds(10 * s), 0},
		"rounded":                                 {8 * s, 2*s - time.Microsecond, kinds(10 * s), 10 * s},
	} {
		if got := ttlOf(stmt.Row{Age: c.age, Left: c.left}, c.kinds); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
