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

func TestHasOthers(t *testing.T) {
	t.Parallel()
	for holder, want := range map[string]bool{ours: false, javas: true, "": true} {
		if got := (listing.Reading{Rows: []sqllock.Row{{Holder: holder}}}).HasOthers(); got != want {
			t.Errorf("%q: %v", holder, got)
		}
	}
}
