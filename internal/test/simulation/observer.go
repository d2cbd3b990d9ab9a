package simulation

import (
	"database/sql/driver"
	"errors"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

// prepareGuarded creates the table that guarded transactions write.
func (w *World) prepareGuarded() error {
	var err error
	w.serve(func() {
		_, err = w.observer.exec("CREATE TABLE guarded (key TEXT PRIMARY KEY, number INTEGER NOT NULL)", nil)
		for _, key := range w.guardedKeys() {
			_, insertErr := w.observer.exec("INSERT INTO guarded VALUES (?, 0)", []driver.NamedValue{{Ordinal: 1, Value: key}})
			err = errors.Join(err, insertErr)
		}
	})
	return err
}

// observe compares the tables with the leases, after a commit.
func (w *World) observe(by commit) {
	end := "EXPIRED_AFTER"
	if w.plan.Layout == dialect.Spring6 {
		end = "CREATED_DATE"
	}
	var rows *buffered
	var err error
	w.serve(func() {
		rows, err = w.observer.query("SELECT LOCK_KEY, CLIENT_ID, datetime("+end+", 'subsec'), NULL FROM INT_LOCK"+
			" UNION ALL SELECT key, NULL, NULL, number FROM guarded", nil)
	})
	if err != nil {
		w.violated("observer", "%v", err)
		return
	}
	var locks []lockRow
	written := make(map[string]int64)
	for _, row := range rows.rows {
		if number, ok := row[3].(int64); ok {
			written[row[0].(string)] = number
			continue
		}
		expires := w.expiryOf(row[2])
		locks = append(locks, lockRow{w.names[row[0].(string)], row[1].(string), expires, w.instantOf(expires)})
	}
	for _, key := range w.witness.observed(locks, written, by) {
		w.wakers.deleted(key)
	}
}

// deleteByForce deletes the row of a key, as an administrator may.
func (w *World) deleteByForce(key string) {
	var result driver.Result
	var err error
	w.serve(func() {
		result, err = w.observer.exec("DELETE FROM INT_LOCK WHERE LOCK_KEY = ?", []driver.NamedValue{{Ordinal: 1, Value: key}})
	})
	if err != nil {
		return // another connection writes
	}
	if n, err := result.RowsAffected(); err == nil && n > 0 {
		w.note("admin", "deletes %s by force", key)
		w.counted()
		w.observe(commit{by: "admin", forced: key})
	}
}

// expiryOf returns when a row expires, as the database's clock will say.
func (w *World) expiryOf(column driver.Value) time.Time {
	text, _ := column.(string)
	expires, err := time.Parse("2006-01-02 15:04:05.000", text)
	if err != nil {
		w.violated("observer", "instant %v: %v", column, err)
	}
	if w.plan.Layout == dialect.Spring6 {
		expires = expires.Add(w.plan.Processes[0].Registry.TTL)
	}
	return expires
}
