package listing

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seatkey"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

const hash = "d5642a7a-3ff9-3c02-839e-0a4ee8b8f024"

func TestNamed(t *testing.T) {
	t.Parallel()
	locks := Named([]sqllock.Row{
		{LockKey: hash, Holder: "web-1:4711-0a3f9c52e11"},
		{LockKey: "0cc175b9-c0f1-36b6-831c-399e26977266", Holder: "8f6b4a52-4a0e-4d3b-9f3e-0f2a1f3d5c77"},
		{LockKey: "plain\x1bkey", Left: -1},
		{LockKey: "cron", Holder: "web-1-k3f9c52e11a"},
		{LockKey: hash, Key: "as recorded", Holder: "web-1-k3f9c52e11b", Left: -1},
	}, map[string]string{hash: "orders/42"})
	for i, want := range []struct{ name, client, number, state string }{
		{"orders/42", "web-1:4711", "0a3f9c52e11", "held"},
		{"0cc175b9-c0f1-36b6-831c-399e26977266", "8f6b4a52-4a0e-4d3b-9f3e-0f2a1f3d5c77", "", "held"},
		{`"plain\x1bkey"`, "", "", "expired"},
		{"cron", "web-1", "k3f9c52e11a", "kept"},
		{"as recorded", "web-1", "k3f9c52e11b", "finished"},
	} {
		client, number := locks[i].Holder()
		if l := locks[i]; l.Name() != want.name || client != want.client || number != want.number || l.State() != want.state {
			t.Errorf("%q, %q, %q, %q, want %q", l.Name(), client, number, l.State(), want)
		}
	}
	for search, want := range map[string]int{"": 5, "ORDERS": 1, "web held": 1, "web expired": 0, "0cc1": 1, "expired": 1, "web finished": 1} {
		n := 0
		for _, l := range locks {
			if l.Matches(search) {
				n++
			}
		}
		if n != want {
			t.Errorf("%q matches %d locks, want %d", search, n, want)
		}
	}
}

func TestSort(t *testing.T) {
	t.Parallel()
	locks := []Lock{
		{Row: sqllock.Row{LockKey: "1", Region: "B", Holder: "c", Age: 2, Left: 9}, Key: "b"},
		{Row: sqllock.Row{LockKey: "2", Region: "A", Holder: "a", Age: 3, Left: 9}, Key: "A"},
		{Row: sqllock.Row{LockKey: "3", Region: "A", Holder: "b", Age: 1, Left: 7}, Key: "c"},
		{Row: sqllock.Row{LockKey: "4", Region: "C", Holder: "d", Age: 9, Left: -5}, Key: "d"},
	}
	for order, want := range map[Order]string{
		"key": "2134", "-key": "4312", "region": "2314", "holder": "2314", "age": "3124", Oldest: "2134", "left": "3214", "-left": "2134", "what": "2314",
	} {
		sorted := slices.Clone(locks)
		Sort(sorted, order)
		check.Equal(t, string(order), sorted[0].LockKey+sorted[1].LockKey+sorted[2].LockKey+sorted[3].LockKey, want)
		if order.Valid() == (order == "what") {
			t.Errorf("%s: valid %v", order, order.Valid())
		}
	}
}

// TestGrouped shows permits and readers as what they are rows of, with hashed keys and with plain ones.
func TestGrouped(t *testing.T) {
	t.Parallel()
	names := make(map[string]string)
	lockKey := func(key string) string {
		hashed := check.Value(sqllock.SpringKeys(key))(t)
		names[hashed] = key
		return hashed
	}
	render, prices, mine := lockKey("render"), lockKey("prices"), lockKey("my permit 4")
	permits := make([]string, 3)
	for i := range permits {
		permits[i] = lockKey(seatkey.Seat(render, seatkey.Permit, i))
	}
	turn := lockKey(seatkey.Turn(render, seatkey.Permit))
	reader := func(i int) string { return lockKey(seatkey.Seat(prices, seatkey.Reader, i)) }
	far, ours := lockKey(seatkey.Seat(lockKey("far"), seatkey.Permit, 2)), lockKey("permit 2 of mine")
	delete(names, far) // it is of another machine, and so is its semaphore
	delete(names, lockKey("far"))
	waited := []sqllock.Row{{LockKey: turn, Age: 9}, {LockKey: permits[2], Holder: "h2", Left: 5, Age: 2}, {LockKey: permits[0], Holder: "h0", Left: 4, Age: 1}}
	for want, rows := range map[string][]sqllock.Row{
		"render 2/3, waited for":   waited,
		"render 1/3":               {{LockKey: permits[1], Left: -1}, {LockKey: permits[0]}},
		"render 0/3; orders":       {{LockKey: permits[1], Left: -1}, {LockKey: "orders", Left: -1}},
		"render; render 1/3":       {{LockKey: render}, {LockKey: permits[1]}}, // a plain lock excludes no permit
		"prices 1 reader":          {{LockKey: reader(17)}},
		"prices writer, 2 readers": {{LockKey: reader(10)}, {LockKey: reader(9)}, {LockKey: prices}},
		"cart 3 permits":           {{LockKey: "cart permit 0"}, {LockKey: "cart permit 10"}, {LockKey: "cart permit 9"}},
		"far 1 permit":             {{LockKey: far, Key: "permit 2 of far"}},
		"cart 1 permit":            {{LockKey: "cart permit 2", Key: "permit 2 of cart"}},
		"permit 2 of mine":         {{LockKey: ours, Key: "permit 2 of mine"}},
		"x permit 01; my permit 4": {{LockKey: "x permit 01"}, {LockKey: mine}}, // which are users' keys
	} {
		var got []string
		for _, g := range Grouped(Named(rows, names)) {
			got = append(got, strings.TrimRight(g.Name()+" "+g.Count(), " "))
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	g := Grouped(Named(waited, names))[0]
	if g.Row.Holder != "h2" || g.Age != 2 || g.Left != 4 || g.LockKey != render || g.Rows[0].Name() != "permit 0 of render" || g.Rows[2].LockKey != turn || !g.Matches("h0 0 of render") || g.Matches("h1") {
		t.Errorf("%+v", g)
	}
}

// TestReleasedRows counts no row that was released among those that have a holder, or that have expired.
func TestReleasedRows(t *testing.T) {
	t.Parallel()
	released := sqllock.Row{LockKey: "cart permit 0", Holder: "app-k0000000001", Age: time.Hour, Left: -24 * time.Hour}
	crashed := sqllock.Row{LockKey: "cart permit 1", Holder: "app-00000000002", Age: time.Minute, Left: -time.Second}
	held := sqllock.Row{LockKey: "cart permit 2", Holder: "app-00000000003", Age: time.Second, Left: time.Minute}
	turn := sqllock.Row{LockKey: "cart permit turn", Holder: "app-00000000004", Age: 2 * time.Hour, Left: time.Minute}
	for _, test := range []struct {
		rows   []sqllock.Row
		state  string
		left   time.Duration
		others int
	}{
		{[]sqllock.Row{released, crashed, held}, "held", time.Minute, 1},
		{[]sqllock.Row{released, crashed}, "expired", -time.Second, 0},
		{[]sqllock.Row{released, turn}, "finished", -24 * time.Hour, 0},
		{[]sqllock.Row{released}, "finished", -24 * time.Hour, 0},
		{[]sqllock.Row{turn}, "held", time.Minute, 0},
	} {
		g := Grouped(Named(test.rows, nil))[0]
		if g.State() != test.state || g.Left != test.left || g.Others() != test.others {
			t.Errorf("%+v: %s, %v left, %d others", test, g.State(), g.Left, g.Others())
		}
	}
}

// TestManyPermits counts the permits of a semaphore once, not once for each of them.
func TestManyPermits(t *testing.T) { //nolint:paralleltest // it counts allocations
	const permits = 300
	names, rows := make(map[string]string), make([]sqllock.Row, permits)
	for i := range rows {
		key := seatkey.Seat(hash, seatkey.Permit, i)
		rows[i].LockKey, _ = sqllock.SpringKeys(key)
		names[rows[i].LockKey] = key
	}
	var locks []Lock
	if n := testing.AllocsPerRun(1, func() { locks = Named(rows, names) }); n > 50*permits || locks[permits-1].Seat.Total != permits {
		t.Errorf("%v allocations for %d permits, of which %d are known", n, permits, locks[permits-1].Seat.Total)
	}
}

func TestBars(t *testing.T) {
	t.Parallel()
	var bars Bars
	for _, step := range []struct{ age, left, want time.Duration }{
		{2 * time.Second, 10 * time.Second, 10 * time.Second},  // of a lease of 10 s, or of one of 12 that was not renewed
		{5 * time.Second, 7 * time.Second, 10 * time.Second},   // the same lease
		{8 * time.Second, 27 * time.Second, 30 * time.Second},  // it was renewed
		{20 * time.Second, 15 * time.Second, 30 * time.Second}, // and gets shorter
		{40 * time.Second, -5 * time.Second, 30 * time.Second}, // it has expired
	} {
		locks := []Lock{{Row: sqllock.Row{LockKey: "k", Holder: "h", Age: step.age, Left: step.left}}}
		bars.Fill(locks)
		if locks[0].Full != step.want {
			t.Errorf("%v old, %v left: full %v, want %v", step.age, step.left, locks[0].Full, step.want)
		}
	}
	young := []Lock{{Row: sqllock.Row{LockKey: "k", Holder: "other", Age: time.Second, Left: 44 * time.Second}}}
	if bars.Fill(young); young[0].Full != 45*time.Second || len(bars.full) != 1 {
		t.Errorf("full %v, %d remembered", young[0].Full, len(bars.full))
	}
	old := []Lock{{Row: sqllock.Row{LockKey: "z", Left: -time.Hour}}, {Row: sqllock.Row{LockKey: "y", Left: 1000 * time.Hour}}}
	if bars.Fill(old); old[0].Full < 0 || old[1].Full != 1000*time.Hour {
		t.Errorf("full %v, %v", old[0].Full, old[1].Full)
	}
}

// TestAfter shows rows some time after they were read. That a held one has expired, only another reading can say.
func TestAfter(t *testing.T) {
	t.Parallel()
	held := Lock{Row: sqllock.Row{Age: 5 * time.Second, Left: 10 * time.Second}}.After(time.Minute)
	if held.Expired() || held.HeldFor() != 65*time.Second {
		t.Errorf("%+v, held for %v", held, held.HeldFor())
	}
	dead := Lock{Row: sqllock.Row{Age: 13 * time.Minute, Left: -11 * time.Minute}}.After(time.Minute)
	if dead.Left != -12*time.Minute || dead.HeldFor() != 2*time.Minute {
		t.Errorf("%+v, held for %v", dead, dead.HeldFor())
	}
	kept := Lock{Row: sqllock.Row{Holder: "app-k0000000001", Age: 13 * time.Minute, Left: -11 * time.Minute}}
	check.Equal(t, "until the end of its minimum hold", kept.HeldFor(), 2*time.Minute)
	busy := Lock{Row: sqllock.Row{Holder: "app-k0000000001", Age: time.Second, Left: -24 * time.Hour}}
	check.Equal(t, "the row of a busy key", busy.HeldFor(), time.Second)
}
