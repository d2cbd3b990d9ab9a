package names

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/stmt"
)

// A RunNote is what the table of names has of the runs under one lock.
type RunNote struct {
	Region, LockKey string
	Text            string        // what the last run has written, or ""
	Age             time.Duration // of the text
	Skips           int64
	Skipped         time.Duration // how long ago the last skip was counted
}

// Runs reads what is known of runs, of every region.
func (t *Table) Runs(ctx context.Context) ([]RunNote, error) {
	return t.readRuns(ctx, t.statements.runs, nil)
}

// RunOf reads what is known of the runs under one lock of the region: the zero value if nothing is.
func (t *Table) RunOf(ctx context.Context, lockKey string) (note RunNote, ok bool) {
	notes, err := t.readRuns(ctx, t.statements.runsOf, []string{runID + lockKey, skipID + lockKey})
	for _, n := range notes {
		if n.Region == t.region {
			note = n
		}
	}
	return note, err == nil
}

func (t *Table) readRuns(ctx context.Context, q query, ids []string) (runs []RunNote, err error) {
	notes, err := t.read(ctx, timeout, q, ids)
	at := make(map[nameID]int) // by region and LOCK_KEY
	for _, n := range notes {
		kind, lockKey, _ := strings.Cut(n.id, ":")
		i, found := at[nameID{n.region, lockKey}]
		if !found {
			i, runs = len(runs), append(runs, RunNote{Region: n.region, LockKey: lockKey})
			at[nameID{n.region, lockKey}] = i
		}
		if run := &runs[i]; kind+":" == skipID {
			run.Skips, _ = strconv.ParseInt(n.text, 10, 64) // a version that writes something else is not known
			run.Skipped = n.age
		} else {
			run.Text, run.Age = n.text, n.age
		}
	}
	return runs, err
}

// WriteRun writes what is to be known of the last run under a lock: see [Fits].
func (t *Table) WriteRun(ctx context.Context, lockKey, text string) bool {
	return t.write(ctx, []stmt.Claim{{LockKey: runID + lockKey, Holder: encode(text)}})
}

// CountSkips adds to the number of runs that were skipped because others held a lock. Several processes may do so at once.
func (t *Table) CountSkips(ctx context.Context, lockKey string, n int64) bool {
	_, err := send(ctx, &t.writing, timeout, func(ctx context.Context, db stmt.Executor) (int64, error) {
		row := stmt.Claim{LockKey: skipID + lockKey, Holder: strconv.FormatInt(n, 10)}
		return stmt.Exec(ctx, db, t.statements.add, stmt.Values{Claim: row})
	})
	return err == nil
}

// ForgetRuns deletes what is known of the runs under one lock of the region, and reports whether there was anything.
func (t *Table) ForgetRuns(ctx context.Context, lockKey string) (deleted bool, err error) {
	n, err := send(ctx, &t.deleting, timeout, func(ctx context.Context, db stmt.Executor) (int64, error) {
		return stmt.Exec(ctx, db, t.statements.forget, stmt.Values{Keys: []string{runID + lockKey, skipID + lockKey}})
	})
	return n > 0, err
}
