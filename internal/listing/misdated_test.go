package listing_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
)

const ours, javas = "web-1:4711:abc-0a3f9c52e11", "3f1e2d4c-5b6a-4978-8a9b-0c1d2e3f4a5b"

func TestAhead(t *testing.T) {
	t.Parallel()
	rows := []sqllock.Row{
		{LockKey: "own", Holder: ours, Age: -time.Hour},
		{LockKey: "kept", Holder: "web-1:4711:abc-k0000000001", Age: -time.Hour},
		{LockKey: "near", Holder: javas, Age: -time.Second},
		{LockKey: "right", Holder: javas, Age: time.Hour},
	}
	if got, by := listing.Ahead(rows); got != nil || by != 0 {
		t.Errorf("%+v by %v", got, by)
	}
	rows = append(rows, sqllock.Row{LockKey: "a", Holder: javas, Age: -5 * time.Hour}, sqllock.Row{LockKey: "b", Holder: "billing-java", Age: -3 * time.Second})
	if got, by := listing.Ahead(rows); len(got) != 2 || got[0].LockKey != "a" || by != 5*time.Hour {
		t.Errorf("%+v by %v", got, by)
	}
}

func TestBehind(t *testing.T) {
	t.Parallel()
	const past = -5 * time.Hour
	began := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	reading := func(at time.Duration, rows ...sqllock.Row) listing.Reading {
		return listing.Reading{Rows: rows, Began: began.Add(at), End: began.Add(at + 10*time.Millisecond), All: true}
	}
	row := func(holder string, left time.Duration) sqllock.Row {
		return sqllock.Row{LockKey: "k", Holder: holder, Left: left}
	}
	for name, c := range map[string]struct {
		before, after listing.Reading
		want          int
	}{
		"it stays, expired":          {reading(0, row(javas, past)), reading(time.Second, row(javas, past-time.Second)), 0},
		"it is written again":        {reading(0, row(javas, past)), reading(time.Second, row(javas, past)), 1},
		"another holder writes it":   {reading(0, row(ours, 0)), reading(time.Second, row(javas, past)), 1},
		"it is new":                  {reading(0), reading(time.Second, row(javas, past)), 1},
		"it is new and lasts":        {reading(0), reading(time.Second, row(javas, 10*time.Second)), 0},
		"it is new and has just run": {reading(0), reading(time.Second, row(javas, -900*time.Millisecond)), 0},
		"it may have been there":     {listing.Reading{Began: began, End: began}, reading(time.Second, row(javas, past)), 0},
		"it is our own":              {reading(0), reading(time.Second, row(ours, past)), 0},
	} {
		got, by := listing.Behind(c.before, c.after)
		if len(got) != c.want || c.want > 0 && (by < 4*time.Hour || by > 5*time.Hour) {
			t.Errorf("%s: %+v by %v", name, got, by)
		}
	}
}

func TestZoned(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second
	row := func(holder string, sinceItsEnd time.Duration) sqllock.Row {
		return sqllock.Row{LockKey: "k", Holder: holder, Age: sinceItsEnd + lease, Left: -sinceItsEnd}
	}
	for name, c := range map[string]struct {
		row sqllock.Row
		by  time.Duration
	}{
		"it is held":                    {row(javas, -time.Second), 0},
		"it has just expired":           {row(javas, time.Second), 0},
		"held five hours ago":           {row(javas, 5*time.Hour-20*time.Second), 5 * time.Hour},
		"held five hours and a half":    {row(javas, 5*time.Hour+30*time.Minute-time.Second), 5*time.Hour + 30*time.Minute},
		"expired five hours ago":        {row(javas, 5*time.Hour+time.Second), 0},
		"not yet held five hours ago":   {row(javas, 5*time.Hour-31*time.Second), 0},
		"held days ago":                 {row(javas, 48*time.Hour-20*time.Second), 0},
		"a lease of an hour":            {sqllock.Row{Holder: javas, Age: 6*time.Hour - time.Minute, Left: time.Minute - 5*time.Hour}, 0},
		"our own":                       {row(ours, 5*time.Hour-20*time.Second), 0},
		"an end before the begin of it": {sqllock.Row{Holder: javas, Age: time.Second, Left: -5 * time.Hour}, 0},
	} {
		if got, by := listing.Zoned([]sqllock.Row{c.row}); by != c.by || (len(got) > 0) != (c.by > 0) {
			t.Errorf("%s: %+v by %v", name, got, by)
		}
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	at := func(holder string, ages ...time.Duration) (rows []sqllock.Row) {
		for _, age := range ages {
			rows = append(rows, sqllock.Row{Holder: holder, Age: age})
		}
		return rows
	}
	const fraction = 123456 * time.Microsecond
	for name, c := range map[string]struct {
		rows []sqllock.Row
		want int
	}{
		"none":                    {nil, 0},
		"one":                     {at(javas, fraction), 0},
		"two":                     {at(javas, time.Second+fraction, 3*time.Second+fraction), 2},
		"two of one instant":      {at(javas, time.Second+fraction, time.Second+fraction), 0},
		"one is in the future":    {at(javas, fraction-time.Second, 3*time.Second+fraction), 2},
		"all fractions differ":    {at(javas, time.Second, 2*time.Second+fraction, 4*time.Second+2*fraction), 0},
		"most have fractions":     {append(at(javas, time.Second, 2*time.Second), at(javas, fraction, 2*fraction, 3*fraction)...), 0},
		"half of them have":       {append(at(javas, time.Second, 2*time.Second), at(javas, fraction, 2*fraction)...), 2},
		"our own do not count":    {append(at(javas, time.Second, 2*time.Second), at(ours, fraction, 2*fraction, 3*fraction)...), 2},
		"our own are no evidence": {at(ours, time.Second, 2*time.Second), 0},
	} {
		if got := listing.Whole(c.rows); len(got) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestHasOthers(t *testing.T) {
	t.Parallel()
	for holder, want := range map[string]bool{ours: false, javas: true, "": true} {
		if got := (listing.Reading{Rows: []sqllock.Row{{Holder: holder}}}).HasOthers(); got != want {
			t.Errorf("%q: %v", holder, got)
		}
	}
}
