package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/simulation"
)

// A sweep runs the worlds of several seeds, and adds up their reports.
type sweep struct {
	first     uint64    // the first seed
	seeds     []uint64  // if not nil, these and no others
	worlds    uint64    // how many at most; 0 means no limit
	until     time.Time // no world is begun after that, unless it is zero
	twice     uint64    // how many worlds are run twice, and must have the same history
	changes   string
	events    int  // of the history of a violation
	firstOnly bool // the first violation ends it

	mu           sync.Mutex
	begun        uint64
	ended        int
	virtual, cpu time.Duration
	acquisitions int
	faults       int
	failed       []report
	err          error
}

// run runs the worlds.
func (s *sweep) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for todo, twice, ok := s.next(); ok && ctx.Err() == nil; todo, twice, ok = s.next() {
				if s.runWorld(ctx, t, todo, twice) && s.firstOnly {
					cancel()
				}
			}
		})
	}
	running.Wait()
	s.print(time.Since(began))
	if s.err != nil {
		t.Error(s.err)
	}
	for _, failed := range s.failed {
		t.Error(failed.explain())
	}
}

// next returns the next world, and whether it is run twice.
func (s *sweep) next() (todo task, twice, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.begun
	if s.worlds > 0 && n >= s.worlds || !s.until.IsZero() && time.Now().After(s.until) {
		return todo, false, false
	}
	s.begun++
	seed := s.first + n
	if s.seeds != nil {
		seed = s.seeds[n]
	}
	return task{seed, s.changes, s.events}, n < s.twice, true
}

// runWorld runs a world. It reports whether something has failed.
func (s *sweep) runWorld(ctx context.Context, t *testing.T, todo task, twice bool) (failed bool) {
	t.Helper()
	r, cpu, err := runChild(ctx, t, todo)
	if twice && err == nil {
		again, more, moreErr := runChild(ctx, t, todo)
		cpu, err = cpu+more, moreErr
		if again.Sum != r.Sum && r.Violation == nil && err == nil {
			r.Violation = &simulation.Violation{Kind: "repeat", Text: "it had another history the second time"}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cpu += cpu
	if ctx.Err() != nil {
		return false // another world has failed
	}
	if err != nil {
		s.err = errors.Join(s.err, err)
		return true
	}
	s.ended++
	s.virtual += r.Virtual
	s.acquisitions += r.Acquisitions
	s.faults += r.Faults
	if s.seeds != nil {
		fmt.Printf("simulation: seed %d: %v of virtual time, %d acquisitions, history %x\n", r.Seed, r.Virtual, r.Acquisitions, r.Sum)
		if s.events > 80 && r.Violation == nil {
			fmt.Print(r.History)
		}
	}
	if r.Violation == nil {
		return false
	}
	s.failed = append(s.failed, r)
	fmt.Printf("simulation: seed %d: %s: %s (more when all have ended)\n", r.Seed, r.Violation.Kind, r.Violation.Text)
	return true
}

// print prints the sum. The figures of a minute are those of two processors that have nothing
// else to do.
func (s *sweep) print(took time.Duration) {
	minutes := s.cpu.Minutes() / 2
	first := s.first
	if s.seeds != nil {
		first = s.seeds[0]
	}
	fmt.Printf("simulation: seeds from %d on, %d worlds, %v of virtual time, %d acquisitions, %d faults in %v, %v of processor time"+
		" (%.1f virtual hours and %.0f acquisitions a minute), %d violations\n",
		first, s.ended, s.virtual.Round(time.Second), s.acquisitions, s.faults, took.Round(time.Second),
		s.cpu.Round(time.Second), s.virtual.Hours()/minutes, float64(s.acquisitions)/minutes, len(s.failed))
}
