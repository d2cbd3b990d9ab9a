package measure

import (
	"sync"
	"time"
)

// Oldest knows the waits, or the holds, of a process that have not ended, by the name of the lock, or by "" if there are no
// names. The zero value is ready.
type Oldest struct {
	mu       sync.Mutex
	last     uint64
	began    map[string]map[uint64]time.Time
	byHolder map[string]leasesOf
}

// leasesOf are the numbers of what ends with the leases of one holder: several while one hands its row on, and is not told
// to have ended yet. They end in the order in which they began.
type leasesOf struct {
	first uint64
	more  []uint64
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

// EndsWith has what has that number end with a lease of the holder: see [Oldest.LeaseEnd].
func (o *Oldest) EndsWith(holder string, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byHolder == nil {
		o.byHolder = make(map[string]leasesOf)
	}
	of, others := o.byHolder[holder]
	if others {
		of.more = append(of.more, number)
	} else {
		of.first = number
	}
	o.byHolder[holder] = of
}

// LeaseEnd notes the end of what ends with this lease of the holder. ended is false if nothing does.
func (o *Oldest) LeaseEnd(name, holder string) (ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of, ended := o.byHolder[holder]
	if !ended {
		return false
	}
	delete(o.began[name], of.first)
	if len(of.more) == 0 {
		delete(o.byHolder, holder)
	} else {
		o.byHolder[holder] = leasesOf{of.more[0], of.more[1:]}
	}
	return true
}
