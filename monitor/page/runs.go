package page

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/printable"
	"github.com/sqllock/sqllock/internal/runs"
)

// runsEvery is the shortest time between two statements that read the runs of jobs, and maxRuns is how many jobs are shown.
const (
	runsEvery = 10 * time.Second
	maxRuns   = 500
)

// readRuns reads what is known of the runs of jobs, unless it was read a short time ago. Only one goroutine calls it at a time.
func (r *reader) readRuns(ctx context.Context) {
	now := time.Now()
	if now.Before(r.runsNext) {
		return
	}
	all, err := runs.Read(ctx, r.registry.Repository())
	answered := time.Now()
	if err == nil { // otherwise those that were read last are shown, whose ages go on
		r.runs, r.runsAt = all, answered
	}
	r.runsNext = latest(now.Add(runsEvery), answered.Add(share*answered.Sub(now)))
}

// A runView is what is known of the runs of a job on all instances. The JSON form is documented in docs/page.md.
type runView struct {
	Key       *string          `json:"key"`
	LockKey   string           `json:"lock_key"`
	Region    string           `json:"region"`
	Ended     *float64         `json:"ended_seconds"` // ago
	Took      float64          `json:"took_seconds"`
	Failed    bool             `json:"last_failed"`
	Code      *int             `json:"exit_code"`
	Process   *sqllock.Process `json:"process"`
	Succeeded *float64         `json:"succeeded_seconds"` // ago
	Runs      int64            `json:"runs"`
	Failures  int64            `json:"failures"`
	Skips     int64            `json:"skips"`

	Name string `json:"-"` // safe to show
	By   string `json:"-"`
}

// runsOf returns the runs of the lock whose page it is, or of all jobs, in the order of their names.
func (p *page) runsOf(q query, s snapshot) (views []runView) {
	for _, run := range s.runs {
		if q.Lock != (lockID{}) && (run.LockKey != q.Lock.LockKey || run.Region != q.Lock.Region) {
			continue
		}
		key := cmp.Or(run.Key, p.reader.names[run.LockKey])
		v := runView{LockKey: run.LockKey, Region: run.Region, Runs: run.Runs, Failures: run.Failures, Skips: run.Skips, Name: printable.Text(cmp.Or(key, run.LockKey))}
		if key != "" {
			v.Key = &key
		}
		if last := run.Last; last != nil {
			v.Ended, v.Took, v.Failed, v.Code, v.Process = s.ago(&last.Ended), seconds(last.Took), last.Failed, last.Code, &last.Process
			v.By = printable.Text(last.Process.String())
		}
		v.Succeeded = s.ago(run.Succeeded)
		views = append(views, v)
	}
	slices.SortFunc(views, func(a, b runView) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Region, b.Region), strings.Compare(a.LockKey, b.LockKey))
	})
	return views[:min(len(views), maxRuns)]
}

// ago returns how long ago something was, in seconds, that was so long ago when the runs were read.
func (s snapshot) ago(then *time.Duration) *float64 {
	if then == nil {
		return nil
	}
	now := seconds(*then + time.Since(s.runsAt))
	return &now
}
