package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Apply changes a plan. The changes, separated by blanks, are what a shrunk failure prints:
//
//	-slow         without a fault
//	+failover     with a fault
//	-p2           without a process
//	p1.workers=1  with fewer callers in a process
//	keys=1        with fewer keys
//	duration=90s  with faults for a shorter time
//	salt=3        with other random numbers
//	-joint        without callers that lock several keys together
//	permits=0     without a semaphore, or with one of other permits
//	-readwrite    without a read-write lock
func (p *Plan) Apply(changes string) error {
	for _, change := range strings.Fields(changes) {
		if err := p.apply(change); err != nil {
			return fmt.Errorf("change %q: %w", change, err)
		}
	}
	return nil
}

func (p *Plan) apply(change string) error {
	name, value, _ := strings.Cut(change, "=")
	switch {
	case name == "keys":
		return setNumber(&p.Keys, value)
	case name == "permits":
		return setNumber(&p.Permits, value)
	case name == "-joint":
		p.Joint = false
		return nil
	case name == "-readwrite":
		p.ReadWrite = false
		return nil
	case name == "salt":
		return setNumber(&p.Salt, value)
	case name == "duration":
		d, err := time.ParseDuration(value)
		p.Duration = d
		return err
	case strings.HasSuffix(name, ".workers"):
		i := p.process(strings.TrimSuffix(name, ".workers"))
		if i < 0 {
			return errNoSuchThing
		}
		return setNumber(&p.Processes[i].Workers, value)
	case strings.HasPrefix(name, "+"):
		p.Faults = append(p.Faults, Fault(name[1:]))
		return nil
	}
	if i := p.process(strings.TrimPrefix(name, "-")); i >= 0 {
		p.Processes = slices.Delete(p.Processes, i, i+1)
		return nil
	}
	i := slices.Index(p.Faults, Fault(strings.TrimPrefix(name, "-")))
	if i < 0 {
		return errNoSuchThing
	}
	p.Faults = slices.Delete(p.Faults, i, i+1)
	return nil
}

// process returns the index of a process, or -1.
func (p *Plan) process(name string) int {
	return slices.IndexFunc(p.Processes, func(process ProcessPlan) bool { return process.Name == name })
}

var errNoSuchThing = errors.New("the plan has no such thing")

func setNumber(to *int, value string) error {
	n, err := strconv.Atoi(value)
	if err == nil && n < 0 {
		err = strconv.ErrRange
	}
	*to = n
	return err
}

// Reductions are changes of which each makes a plan simpler.
func (p *Plan) Reductions(failedAfter time.Duration) (changes []string) {
	if failedAfter > 0 && failedAfter < p.Duration*3/4 {
		changes = append(changes, "duration="+(failedAfter+time.Second).Round(time.Second).String())
	}
	if len(p.Processes) > 1 {
		for _, process := range p.Processes {
			changes = append(changes, "-"+process.Name)
		}
	}
	if p.Keys > 1 {
		changes = append(changes, "keys=1")
	}
	if p.Joint {
		changes = append(changes, "-joint")
	}
	if p.Permits > 0 {
		changes = append(changes, "permits=0")
	}
	if p.ReadWrite {
		changes = append(changes, "-readwrite")
	}
	for _, f := range p.Faults {
		changes = append(changes, "-"+string(f))
	}
	for _, process := range p.Processes {
		if process.Workers > 1 {
			changes = append(changes, fmt.Sprintf("%s.workers=%d", process.Name, process.Workers-1))
		}
	}
	return changes
}
