package page

import (
	"time"

	"github.com/sqllock/sqllock/observe"
)

// A jobView is what has become of a job in this process. The JSON form is documented in docs/page.md.
type jobView struct {
	Job     string `json:"job"`
	Runs    int    `json:"runs"`    // that are not known to have failed
	Failed  int    `json:"failed"`  // runs that failed
	Skipped int    `json:"skipped"` // because another instance runs it, or has run it
	Errors  int    `json:"errors"`  // calls that could not run it
	// Began and Took are those of the last run.
	Began time.Time `json:"began,omitzero"`
	Took  float64   `json:"took_seconds"`
	// Succeeded is when the last run without an error ended.
	Succeeded time.Time `json:"last_success,omitzero"`
	// Error is that of the last call, unless it was skipped, or "".
	Error string `json:"error,omitempty"`
}

// ran keeps what has become of a call of a job.
func (r *Recorder) ran(e observe.JobRun) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.jobs.of(e.Job)
	j.Job = brief(e.Job)
	if e.Outcome == observe.JobSkipped {
		j.Skipped++
		return
	}
	if !e.Began.IsZero() {
		j.Began, j.Took = e.Began, seconds(e.Took)
	}
	if j.Error = ""; e.Err != nil {
		j.Error = brief(e.Err.Error())
	}
	switch e.Outcome {
	case observe.JobRan:
		j.Runs, j.Succeeded = j.Runs+1, now
	case observe.JobEnded:
		j.Runs++
	case observe.JobFailed:
		j.Failed++
		r.addLocked(event{At: now, Severity: Broken, What: "job failed", Key: e.Job, Text: j.Error})
	default:
		j.Errors++
		r.addLocked(event{At: now, Severity: Broken, What: "job not run", Key: e.Job, Text: j.Error})
	}
}
