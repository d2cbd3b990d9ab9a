package simulation

import (
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
