package simulation

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// failOver has the database forget its last commits, again and again: it takes a copy, and
// goes on with it some time later, as an asynchronous replica does. All connections break.
func (w *World) failOver() {
	for n := 1; w.pause(w.random.around(meanPeace)) && !w.isCalm(); n++ {
		path := filepath.Join(w.dir, fmt.Sprintf("%d.db", n))
		var err error
		w.serve(func() { _, err = w.observer.exec("VACUUM INTO ?", []driver.NamedValue{{Ordinal: 1, Value: path}}) })
		if err != nil {
			w.violated("observer", "copy the database: %v", err)
			return
		}
		w.pause(w.random.upTo(2 * time.Second))
		w.note("-", "failover")
		w.mu.Lock()
		w.path = path
		w.generation++
		w.mu.Unlock()
		w.serve(func() {
			err = w.observer.close()
			var reopened error
			w.observer, reopened = newSession(path, false)
			err = errors.Join(err, reopened)
		})
		if err != nil {
			w.violated("observer", "connect: %v", err)
			return
		}
	}
}
