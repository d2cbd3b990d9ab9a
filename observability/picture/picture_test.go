package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/observability/dashboard"
)

// worked returns what the dashboard shows after two minutes of work in virtual time.
func worked(t *testing.T) ([]shown, *samples) {
	t.Helper()
	var s *samples
	synctest.Test(t, func(t *testing.T) {
		db := virtual.Migrated(t, dialect.Spring7)
		var err error
		s, err = work(t.Context(), func(string) (database, error) {
			return database{flaky.New(db.DB.Driver(), db.DSN), dialect.SQLite()}, nil
		}, 2*time.Minute, 2*time.Second)
		must(t, err)
	})
	board, err := dashboard.Read("../grafana.json")
	must(t, err)
	panels, err := evaluate(t.Context(), board, s)
	must(t, err)
	return panels, s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// most returns the greatest value of a line between two parts of the time, or 0.
func (l line) most(s *samples, from, until float64) (greatest float64) {
	for _, point := range l.points {
		part := float64(time.UnixMilli(point.T).Sub(s.start)) / float64(s.end.Sub(s.start))
		if from <= part && part <= until {
			greatest = max(greatest, point.F)
		}
	}
	return greatest
}

// TestTheDashboardShowsEachTrouble expects that no panel is empty, and that each trouble shows in the
// panels that are about it, while it lasts. The ten thousand acquisitions of two minutes in virtual time
// take three to seven seconds.
func TestTheDashboardShowsEachTrouble(t *testing.T) {
	t.Parallel()
	panels, s := worked(t)
	find := func(title, name string) line {
		t.Helper()
		for _, p := range panels {
			for _, l := range p.lines {
				if p.Title == title && l.name == name {
					return l
				}
			}
		}
		t.Errorf("%s: there is no line %q", title, name)
		return line{}
	}
	for _, p := range panels {
		if len(p.lines) == 0 {
			t.Errorf("%s is empty", p.Title)
		}
	}
	for _, c := range []struct {
		title, name string
		from, until float64
		least, most float64
	}{
		{"Wait for a lock", "p99", 0.2, 0.3, 0.5, 5},
		{"Waiters and locks held", "app-1 waits", 0.2, 0.3, 6, 14},
		{"Waiters and locks held", "app-1 waits", 0.35, 0.4, 0, 6},
		{"Acquisitions a second", "held", 0, 1, 0.1, 50},
		{"Acquisitions a second", "error", 0, 0.40, 0, 0},
		{"Acquisitions a second", "error", 0.45, 0.55, 0.1, 1000},
		{"Ends of leases a second", "handed_on", 0.2, 0.3, 1, 1000},
		{"Renewals a second", "error", 0.45, 0.56, 0.05, 1000},
		{"Time left at renewals", "app-2", 0.45, 0.56, 0, 1},
		{"Leases lost, by reason", "expired", 0, 0.42, 0, 0},
		{"Leases lost, by reason", "expired", 0.42, 0.60, 0.5, 20},
		{"Leases lost, by reason", "taken", 0.60, 0.68, 0, 0},
		{"Leases lost, by reason", "taken", 0.70, 0.80, 0.5, 20},
		{"Leaders", "scheduler: app-2", 0.2, 0.4, 1, 1},
		{"Leaders", "scheduler: app-2", 0.58, 0.6, 0, 0},
		{"Rows of the table", "held", 0, 1, 1, 100},
	} {
		if got := find(c.title, c.name).most(s, c.from, c.until); got < c.least || got > c.most {
			t.Errorf("%s: %s is %v at most from %v to %v, want %v to %v", c.title, c.name, got, c.from, c.until, c.least, c.most)
		}
	}
	svg := string(draw(panels, s, "a <title>"))
	for _, p := range panels {
		if !strings.Contains(svg, ">"+p.Title+"</text>") {
			t.Errorf("the picture has no panel %s", p.Title)
		}
	}
	if !strings.Contains(svg, "a &lt;title&gt;") {
		t.Error("the title is not escaped")
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for top, want := range map[float64][]float64{1: {0, .2, .4, .6, .8, 1}, 7: {0, 2, 4, 6}, 24: {0, 5, 10, 15, 20}} {
		got := ticks(top)
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%v: %v, want %v", top, got, want)
		}
	}
}
