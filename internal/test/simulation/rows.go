package simulation

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// A lockRow is a row of the lock table.
type lockRow struct {
	key, holder string
	expires     time.Time // as the database's clock will say
	end         time.Time // the same instant
}

// A commit is what has changed the tables.
type commit struct {
	by     string // the network of a process, or who else it was
	client string // of the process
	// statement is the one that was a transaction of its own, or "" if there were others before
	// it: their clock was an earlier one.
	statement string
	forced    string // the key whose row was deleted by force
}

// clockStep is the resolution of the database's clock, twice.
const clockStep = 2 * time.Millisecond

// observed compares the tables with the leases, after a commit. It returns the keys whose rows
// have gone.
func (w *witness) observed(rows []lockRow, written map[string]int64, by commit) (deleted []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := make(map[string]lockRow, len(rows))
	for _, row := range rows {
		now[row.key] = row
	}
	changed := maps.Clone(w.rows)
	maps.Copy(changed, now)
	for key := range changed {
		before, after := w.rows[key], now[key]
		switch {
		case before.holder == "":
		case before.holder == after.holder:
			w.checkRevived(before, after, by)
		case by.forced == key:
			w.force(before)
		default:
			w.checkTaken(before, after, by)
		}
		if before.holder != "" && after.holder == "" {
			deleted = append(deleted, key)
		}
	}
	slices.Sort(deleted)
	w.rows = now
	w.checkWritten(written, by)
	w.checkLeases()
	w.noteFree(changed)
	return deleted
}

// lasts reports whether a row has not expired by the database's clock.
func (w *witness) lasts(row lockRow) bool {
	return row.expires.After(w.world.databaseTime(time.Now()).Add(clockStep))
}

// checkTaken finds rows that have gone too early: while a caller's context lasts, or before
// they expire if another process has done it.
func (w *witness) checkTaken(before, after lockRow, by commit) {
	for c := range w.claims {
		if c.holder == before.holder && c.lives() && !w.isForced(before.holder) {
			w.world.violated("taken", "%q: %s has changed the row of %v, whose context has not ended, to %q",
				before.key, by.by, c, w.world.alias(after.holder))
		}
	}
	lasts, own := w.lasts(before), clientOf(before.holder) == by.client
	if lasts && !own {
		w.world.violated("stolen", "%q: %s has changed the row of %s, which lasts for another %v, to %q",
			before.key, by.by, w.world.alias(before.holder), time.Until(before.end), w.world.alias(after.holder))
	}
	if lasts && clientOf(after.holder) == by.client && (w.kept[before.holder] || w.hasMinHold(before.holder)) {
		w.kept[after.holder] = true // the minimum hold goes on under another holder
	}
}

// hasMinHold reports whether a caller has a lease with a minimum hold: Close may keep its row at any time.
func (w *witness) hasMinHold(holder string) bool {
	for c := range w.claims {
		if c.holder == holder && !c.minHoldEnd.IsZero() {
			return true
		}
	}
	return false
}

// staysUntil notes until when the rows of a claim stay at least.
func (w *witness) staysUntil(c *claim, end time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.minHoldEnd = end
}

// checkRevived finds renewals of rows that had expired.
func (w *witness) checkRevived(before, after lockRow, by commit) {
	expired := before.expires.Before(w.world.databaseTime(time.Now()).Add(-clockStep))
	if expired && by.statement == "UPDATE" && after.expires.After(before.expires) {
		w.world.violated("revived", "%q: %s has renewed the row of %s, which had expired %v ago",
			before.key, by.by, w.world.alias(before.holder), time.Since(before.end))
	}
}

// checkWritten finds guarded transactions that were committed after a later holder was given
// the lock.
func (w *witness) checkWritten(written map[string]int64, by commit) {
	for key, number := range written {
		if number == w.written[key] {
			continue
		}
		if last := w.excludes(key, number); last != nil {
			w.world.violated("late write", "%q: %s commits the guarded write of no. %d, while %v has been given the lock",
				key, by.by, number, last)
		}
		w.written[key], w.committed[number] = number, true
	}
}

// excludes returns the claim that was acquired after that with a number, and that excludes its writes
// to the row of a key; nil if there is none.
func (w *witness) excludes(key string, number int64) *claim {
	later := w.last[key]
	if lock, ok := strings.CutSuffix(key, readersWrite); ok {
		later = w.last[lock] // a writer
	} else if reader := w.lastReader[key]; reader != nil && reader.number > later.number {
		later = reader
	}
	if later == nil || later.number <= number {
		return nil
	}
	return later
}

// noteFree notes since when each of keys is free, or from when on it will be.
func (w *witness) noteFree(keys map[string]lockRow) {
	for key := range keys {
		row, ok := w.rows[key]
		switch {
		case ok:
			w.free[key] = row.end
		case w.free[key].After(time.Now()):
			w.free[key] = time.Now()
		}
	}
}

// wrote reports whether a guarded transaction of an acquisition was committed.
func (w *witness) wrote(number int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.committed[number]
}

// checkMinHold checks, after a release or Close, that the rows of a claim stay until its minimum hold
// has passed.
func (w *witness) checkMinHold(c *claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	until := c.minHoldEnd
	if !time.Now().Before(until) || w.isForced(c.holder) {
		return
	}
	for _, key := range c.keys {
		row, deleted := w.rows[key], !w.deletions[key].Before(c.since)
		if !deleted && (clientOf(row.holder) != c.process.id || row.end.Before(until)) {
			w.world.violated("minimum hold", "%q: %v was released %v too early", key, c, time.Until(until))
		}
	}
}

// checkRenewed checks, after a renewal that began at an instant has succeeded, that none of the rows of a
// claim had been deleted by force before that.
func (w *witness) checkRenewed(c *claim, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range c.keys {
		deleted := w.deletions[key]
		if deleted.After(c.since) && deleted.Before(began) && w.rows[key].holder != c.holder {
			w.world.violated("unnoticed", "%q: %v was renewed, and its row was deleted %v ago", key, c, time.Since(deleted))
		}
	}
}

// leftBehind returns the holders of rows of a process that nothing explains.
func (w *witness) leftBehind(client string) (holders []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range w.rows {
		if clientOf(row.holder) == client && !w.kept[row.holder] && time.Until(row.end) > w.forgotten() {
			holders = append(holders, row.holder)
		}
	}
	return holders
}

// forgotten is how long before a row expires the library may forget it: it measures a
// time-to-live by its own clock, and the database's may be slower.
func (w *witness) forgotten() time.Duration {
	return w.world.plan.LongestTTL() / 50
}
