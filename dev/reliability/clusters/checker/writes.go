//go:build linux

package checker

import (
	"fmt"
	"sort"

	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
)

// writes compares the rows of the database with each other, and with what was acknowledged.
//
// A guarded transaction counts the guarded rows of earlier holders after Guard. All of them are
// there by then: Guard promises that they were committed before the next holder had the lock. So a
// row that was not counted was committed by a holder that was no longer one.
func (r *Report) writes(events []history.Event, rows []Row) {
	present := make(map[string]bool)
	tokens := make(map[string][]int64) // of guarded rows
	for _, row := range rows {
		present[row.ID] = true
		if row.Guarded {
			tokens[row.Key] = append(tokens[row.Key], row.Token)
		}
	}
	for _, of := range tokens {
		sort.Slice(of, func(i, j int) bool { return of[i] < of[j] })
	}
	for _, row := range rows {
		if !row.Guarded {
			continue
		}
		of := tokens[row.Key]
		earlier := sort.Search(len(of), func(i int) bool { return of[i] >= row.Token })
		if earlier > row.Earlier {
			r.Stale = append(r.Stale, fmt.Sprintf("%d guarded writes of earlier holders were committed after %s of %s with token %d had begun", earlier-row.Earlier, row.ID, row.Key, row.Token))
		}
		if row.Later > 0 {
			r.Stale = append(r.Stale, fmt.Sprintf("guarded write %s of %s with token %d saw %d of later holders", row.ID, row.Key, row.Token, row.Later))
		}
	}
	for _, e := range events {
		switch {
		case e.Op != history.Write || e.Err != "":
		case !e.Guarded:
			r.Unguarded++
		default:
			r.Guarded++
			if !present[e.ID] {
				r.Missing = append(r.Missing, fmt.Sprintf("guarded write %s of %s with token %d was acknowledged and is lost", e.ID, e.Key, e.Token))
			}
		}
	}
}
