package measure

import (
	"context"
	"sync"
	"time"

	"github.com/sqllock/sqllock/observe"
)

// maxJobs is how many jobs are kept: those that were called last. Each makes a few time series.
const maxJobs = 100

// Jobs count the calls of jobs by name. The zero value is ready.
type Jobs struct {
	mu     sync.Mutex
	byName map[string]*Runs
}

// Runs are those of one job in this process.
type Runs struct {
	Count   map[observe.JobOutcome]int64 // of all outcomes, some of which may be 0
	Success time.Time                    // the end of the last run that has not failed; zero if there was none
	Took    time.Duration                // of the last run; 0 if there was none
	called  time.Time
}

// SuccessSeconds returns Success as the seconds since 1970, or 0 if there was none.
func (r Runs) SuccessSeconds() float64 { return max(0, float64(r.Success.UnixMilli())/1000) }

// Called implements observe.Observer's JobRun.
func (j *Jobs) Called(_ context.Context, e observe.JobRun) {
	j.mu.Lock()
	defer j.mu.Unlock()
	of := j.ofLocked(Text(e.Job))
	of.called = time.Now()
	of.Count[e.Outcome]++
	if !e.Began.IsZero() {
		of.Took = e.Took
	}
	if e.Outcome == observe.JobRan {
		of.Success = e.Began.Add(e.Took)
	}
}

// ofLocked returns the runs of a job. If there are too many jobs, it forgets the one that was called the longest ago.
func (j *Jobs) ofLocked(name string) *Runs {
	if of := j.byName[name]; of != nil {
		return of
	}
	if len(j.byName) == 0 {
		j.byName = make(map[string]*Runs)
	}
	if len(j.byName) == maxJobs {
		oldest := name
		for other, of := range j.byName {
			if oldest == name || of.called.Before(j.byName[oldest].called) {
				oldest = other
			}
		}
		delete(j.byName, oldest)
	}
	of := &Runs{Count: make(map[observe.JobOutcome]int64)}
	for _, outcome := range []observe.JobOutcome{observe.JobRan, observe.JobFailed, observe.JobEnded, observe.JobSkipped, observe.JobError} {
		of.Count[outcome] = 0 // so that an increase from 0 is seen
	}
	j.byName[name] = of
	return of
}

// Each calls do for each job. do must not keep the counts.
func (j *Jobs) Each(do func(name string, of Runs)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, of := range j.byName {
		do(name, *of)
	}
}
