package servers_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// A cell is a column in one layout and one isolation: one run of the contract.
type cell struct {
	column
	layout    dialect.Layout
	isolation sqllock.Isolation
}

// cellsOf returns all cells of the columns that keep accepts.
func cellsOf(columns []column, keep func(column) bool) []cell {
	var all []cell
	for _, c := range columns {
		if !keep(c) {
			continue
		}
		for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
			for _, isolation := range c.isolations() {
				all = append(all, cell{c, layout, isolation})
			}
		}
	}
	return all
}

func (c cell) String() string { return fmt.Sprintf("%s/%v/%v", c.name(), c.layout, c.isolation) }

// A pair is two values of different factors, such as a server and an isolation, or one value alone. A value contains
// the name of its factor.
type pair [2]string

func (c cell) values() []string {
	return []string{
		"server " + c.server, "driver " + c.driver, "settings " + c.settings,
		"layout " + c.layout.String(), "isolation " + c.isolation.String(),
	}
}

func (c cell) singles() []pair {
	var all []pair
	for _, value := range c.values() {
		all = append(all, pair{value})
	}
	return all
}

func (c cell) pairs() []pair {
	values := c.values()
	var all []pair
	for i, value := range values {
		for _, other := range values[i+1:] {
			all = append(all, pair{value, other})
		}
	}
	return all
}

// pairwise returns cells that together have every pair of values that occurs in all. A fault of one value, or of two
// that meet, shows in them; one that needs three shows only in all.
func pairwise(all []cell) []cell { return covering(all, cell.pairs) }

// covering returns cells that together have everything of all. The choice depends on nothing but all.
func covering(all []cell, of func(cell) []pair) []cell {
	times := make(map[pair]int) // how many chosen cells have the pair
	has := func(least int) func(pair) bool { return func(p pair) bool { return times[p] >= least } }
	add := func(c cell, n int) {
		for _, p := range of(c) {
			times[p] += n
		}
	}
	var chosen []cell
	for {
		best, most := -1, 0
		for i, c := range all {
			if missing := len(of(c)) - count(of(c), has(1)); missing > most {
				best, most = i, missing
			}
		}
		if best < 0 {
			break
		}
		add(all[best], 1)
		chosen = append(chosen, all[best])
	}
	// Later cells can have made an earlier one superfluous.
	var needed []cell
	for _, c := range chosen {
		if count(of(c), has(2)) == len(of(c)) {
			add(c, -1)
			continue
		}
		needed = append(needed, c)
	}
	return needed
}

func count[T any](all []T, is func(T) bool) (n int) {
	for _, one := range all {
		if is(one) {
			n++
		}
	}
	return n
}

// chosenCells returns the cells that TestContract runs, and says how they were chosen: all of them with
// SQLLOCK_TEST_ALL=1, one of SQLite's with -short, one of each server with the race detector, and else pairwise ones. The choice is made among the servers that
// are available, since a missing server must not take with it the only cell for a pair that others have, too. Of
// SQLite alone, nearly all cells would be necessary, although its isolations and layouts have little to do with each
// other: each value once is enough for the loop of a change.
func chosenCells() (cells []cell, how string) {
	all := cellsOf(matrix, func(column) bool { return true })
	switch {
	case testing.Short():
		cells = cellsOf(matrix, isSQLite)[:1]
		how = "-short runs SQLite's first one"
	case dbtest.All():
		cells = cellsOf(matrix, available)
		how = "SQLLOCK_TEST_ALL runs all of the available servers"
	case check.RaceDetector:
		for _, kind := range server.Kinds {
			if of := cellsOf(matrix, func(c column) bool { return c.server == kind.Name && available(c) }); len(of) > 0 {
				cells = append(cells, fullest(of, kind.Name))
			}
		}
		how = "with the race detector, one of each available server: the goroutines are the same in the others"
	case !slices.ContainsFunc(matrix, func(c column) bool { return !isSQLite(c) && available(c) }):
		cells = covering(cellsOf(matrix, isSQLite), cell.singles)
		how = "without servers, every driver, layout, isolation and settings of SQLite is in one; make test runs every pair"
	default:
		cells = pairwise(cellsOf(matrix, available))
		how = "every pair of server, driver, layout, isolation and settings of the available servers is in one; make test-all runs all"
	}
	return cells, fmt.Sprintf("contract: %d of %d cells: %s", len(cells), len(all), how)
}

// fullest returns the cell of a server that runs what all of its cells would show: all parts of the contract are in
// it.
func fullest(cells []cell, server string) (full cell) {
	for i, c := range slices.Backward(cells) {
		if c.server == server && (full.server == "" || !c.plain && c.isolation == sqllock.Serializable) {
			full = cells[i]
		}
	}
	return full
}

func isSQLite(c column) bool { return c.server == server.SQLite }

func available(c column) bool { return dbtest.Missing(c.server) == "" }

func TestCells_Choice(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]func(column) bool{
		"all servers":      func(column) bool { return true },
		"SQLite alone":     isSQLite,
		"without Oracle's": func(c column) bool { return c.server != server.OracleMySQL },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := cellsOf(matrix, keep)
			chosen := pairwise(all)
			t.Logf("%d of %d cells", len(chosen), len(all))
			wanted, times := pairsOf(all), pairsOf(chosen)
			for p := range wanted {
				if times[p] == 0 {
					t.Errorf("no cell has %q", p)
				}
			}
			for _, c := range chosen {
				if count(c.pairs(), func(p pair) bool { return times[p] > 1 }) == len(c.pairs()) {
					t.Errorf("%v is superfluous", c)
				}
			}
		})
	}
}

// TestCells_EveryServerAndDriver does not compare with the matrix alone: a kind of server that no column has would be
// missing there, too.
func TestCells_EveryServerAndDriver(t *testing.T) {
	t.Parallel()
	chosen := pairwise(cellsOf(matrix, func(column) bool { return true }))
	servers, drivers := make(map[string]bool), make(map[string]bool)
	for _, c := range chosen {
		servers[c.server], drivers[c.driver] = true, true
	}
	for _, kind := range server.Kinds {
		if !servers[kind.Name] && kind.Name != server.Spring {
			t.Errorf("no cell of %s", kind.Name)
		}
	}
	for _, driver := range []string{"sqlite", "postgres", "pgx", "mysql"} {
		if !drivers[driver] {
			t.Errorf("no cell of the driver %s", driver)
		}
	}
}

func pairsOf(cells []cell) map[pair]int {
	times := make(map[pair]int)
	for _, c := range cells {
		for _, p := range c.pairs() {
			times[p]++
		}
	}
	return times
}
