package locktable

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"
)

// What the IDs of rows about runs begin with: what the last holder has written of its run, and how many have been skipped.
const (
	runID  = "run:"
	skipID = "skip:"
)

// A RunNote is what the table of names has of the runs under one lock.
type RunNote struct {
	Region, LockKey string
	Text            string        // what the last run has written, or ""
	Age             time.Duration // of the text
	Skips           int64
	Skipped         time.Duration // how long ago the last skip was counted
}

// Runs reads what is known of runs, of every region. It reports whether it could be read.
func (t *Table) Runs(ctx context.Context) ([]RunNote, bool) {
	return t.readRuns(ctx, t.statements.runs, nil)
}

// RunOf reads what is known of the runs under one lock of the region: the zero value if nothing is.
func (t *Table) RunOf(ctx context.Context, lockKey string) (note RunNote, ok bool) {
	notes, ok := t.readRuns(ctx, t.statements.runsOf, []string{runID + lockKey, skipID + lockKey})
	for _, n := range notes {
		if n.Region == t.region {
			note = n
		}
	}
	return note, ok
}

func (t *Table) readRuns(ctx context.Context, s statement, ids []string) (notes []RunNote, ok bool) {
	return sendName(ctx, t, &t.named.reading, t.pool.Try, namesTimeout, func(ctx context.Context, db executor) (notes []RunNote, err error) {
		at := make(map[nameID]int)
		err = query(ctx, db, s, values{keys: ids}, func(rows *sql.Rows) error {
			var region, id, text string
			var age sql.NullInt64
			if err := rows.Scan(&region, &id, &text, &age); err != nil {
				return err
			}
			kind, lockKey, _ := strings.Cut(id, ":")
			i, found := at[nameID{region, lockKey}]
			if !found {
				i, notes = len(notes), append(notes, RunNote{Region: region, LockKey: lockKey})
				at[nameID{region, lockKey}] = i
			}
			if n := &notes[i]; kind+":" == skipID {
				n.Skips, _ = strconv.ParseInt(text, 10, 64) // a version that writes something else is not known
				n.Skipped = max(micros(age), 0)
			} else {
				n.Text, n.Age = decodeName(text), max(micros(age), 0)
			}
			return nil
		})
		return notes, err
	})
}

// WriteRun writes what is to be known of the last run under a lock: see [NameFits].
func (t *Table) WriteRun(ctx context.Context, lockKey, text string) bool {
	return t.writeNames(ctx, []Claim{{LockKey: runID + lockKey, Holder: encodeName(text)}})
}

// CountSkips adds to the number of runs that were skipped because others held a lock. Several processes may do so at once.
func (t *Table) CountSkips(ctx context.Context, lockKey string, n int64) bool {
	_, ok := sendName(ctx, t, &t.named.writing, t.pool.TryOutside, namesTimeout, func(ctx context.Context, db executor) (int64, error) {
		return exec(ctx, db, t.statements.addToName, values{Claim: Claim{LockKey: skipID + lockKey, Holder: strconv.FormatInt(n, 10)}})
	})
	return ok
}

// ForgetRuns deletes what is known of the runs under one lock of the region. deleted is whether there was anything, and ok
// whether the table of names could be written.
func (t *Table) ForgetRuns(ctx context.Context, lockKey string) (deleted, ok bool) {
	n, ok := sendName(ctx, t, &t.named.deleting, t.pool.TryOutside, namesTimeout, func(ctx context.Context, db executor) (int64, error) {
		return exec(ctx, db, t.statements.forgetRuns, values{keys: []string{runID + lockKey, skipID + lockKey}})
	})
	return n > 0, ok
}
