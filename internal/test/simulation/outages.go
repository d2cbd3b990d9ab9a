package simulation

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// addLinks adds the two networks of a process, which may meet outages.
func (w *World) addLinks(links ...*link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allLinks = append(w.allLinks, links...)
	w.links = append(slices.DeleteFunc(w.links, (*link).isDead), links...)
}

// outages begins faults that last for a while.
func (w *World) outages() {
	for w.pause(w.random.around(meanPeace)) && !w.isCalm() {
		f := w.random.pickFault(&w.plan, Silence, Stall, Away)
		if f == "" {
			return
		}
		w.mu.Lock()
		links := slices.Clone(w.links)
		w.mu.Unlock()
		if f != Away && len(links) > 0 { // both networks of one process
			i := w.random.intN(len(links)/2) * 2
			links = links[i : i+2]
		}
		d := w.random.upTo(longestFault)
		w.counted()
		for _, l := range links {
			w.note(l.process, "%s for %v", f, d)
			l.begin(f, d)
		}
	}
}

// meanPeace is the mean time between two faults that last for a while.
const meanPeace = 40 * time.Second

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
