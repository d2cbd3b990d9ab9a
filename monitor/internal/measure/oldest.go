package measure

import (
	"sync"
	"time"
)

// Oldest knows the waits, or the holds, of a process that have not ended, by the name of the lock, or by "" if there are no
// names. The zero value is ready.
type Oldest struct {
	mu    sync.Mutex
	last  uint64
	began map[string]map[uint64]time.Time
}

// Know makes a name known, so that there is a value for it.
func (o *Oldest) Know(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ofLocked(name)
}

// Begin notes a wait or a hold that begins, and returns its number for End.
func (o *Oldest) Begin(name string) (number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	o.ofLocked(name)[o.last] = time.Now()
	return o.last
}

// End notes the end of what has that number.
func (o *Oldest) End(name string, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.began[name], number)
}

func (o *Oldest) ofLocked(name string) map[uint64]time.Time {
	of := o.began[name]
	if of == nil {
		if o.began == nil {
			o.began = make(map[string]map[uint64]time.Time)
		}
		of = make(map[uint64]time.Time)
		o.began[name] = of
	}
	return of
}

// Each calls do for each name, with the seconds since the first began of those that have not ended, or 0 if all have.
func (o *Oldest) Each(do func(seconds float64, name string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, of := range o.began {
		oldest := time.Duration(0)
		for _, began := range of {
			oldest = max(oldest, time.Since(began))
		}
		do(oldest.Seconds(), name)
	}
}

// Holds are the leases of a process. The zero value is ready.
type Holds struct {
	Oldest

	mu       sync.Mutex
	byHolder map[string]holdsOf
}

// holdsOf are the numbers of the holds of one holder: several while one hands its row on, and is not told to have
// ended yet. They end in the order in which they began.
type holdsOf struct {
	first uint64
	more  []uint64
}

// Acquired notes a hold that begins.
func (h *Holds) Acquired(name, holder string) {
	number := h.Begin(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byHolder == nil {
		h.byHolder = make(map[string]holdsOf)
	}
	of, others := h.byHolder[holder]
	if others {
		of.more = append(of.more, number)
	} else {
		of.first = number
	}
	h.byHolder[holder] = of
}

// Ended notes the end of a hold, unless it was not noted.
func (h *Holds) Ended(name, holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of, noted := h.byHolder[holder]
	if !noted {
		return
	}
	h.End(name, of.first)
	if len(of.more) == 0 {
		delete(h.byHolder, holder)
		return
	}
	h.byHolder[holder] = holdsOf{of.more[0], of.more[1:]}
}
