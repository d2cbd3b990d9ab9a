// Package runs keeps in the table of names how the runs of a job end: `sqllock exec` and package job write it, and the tools
// show it. It has one row for each lock, which its holder writes, and one that counts skipped runs. Both are best effort: an
// error reaches no caller.
package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/names"
)

// patience limits how long a release, or a call that is skipped, waits for what is written.
const patience = 250 * time.Millisecond

// A Run is what is known of the runs of a job. All times are differences, by the clock of the database.
type Run struct {
	Region, LockKey string
	// Key is the key as the last run had it, or "" if it is not known.
	Key string
	// Last is the last run that ended, or nil.
	Last *Last
	// Succeeded is how long ago a run last ended without an error, or nil if none has.
	Succeeded *time.Duration
	// Runs and Failures count the runs that ended, and those of them that failed.
	Runs, Failures int64
	// Skips counts the calls that found the lock taken, and Skipped is how long ago the last of them was, or nil.
	Skips   int64
	Skipped *time.Duration
}

// A Last is the last run that ended.
type Last struct {
	Process sqllock.Process
	Ended   time.Duration // how long ago
	Took    time.Duration
	Failed  bool
	// Code is the exit code of a command, or nil.
	Code *int
}

// Result says how the run ended: "succeeded", "failed", or "failed, exit code 3".
func (l *Last) Result() string {
	switch {
	case !l.Failed:
		return "succeeded"
	case l.Code != nil:
		return fmt.Sprintf("failed, exit code %d", *l.Code)
	default:
		return "failed"
	}
}

// A record is what stands in NAME. Times are in milliseconds.
type record struct {
	Key      string          `json:"key"`
	Process  sqllock.Process `json:"process"`
	Took     int64           `json:"took"`
	Failed   bool            `json:"failed,omitempty"`
	Code     *int            `json:"code,omitempty"`
	Success  *int64          `json:"success,omitempty"` // how long before SEEN a run last ended without an error
	Runs     int64           `json:"runs"`
	Failures int64           `json:"failures"`
}

// Record writes that a run under the lock of key has ended. Its caller holds the lock, so that no other run ends at the same
// time. Last.Process is this one's, and Ended now. A run whose lease ctx carries, and whose row is not its own any more, has failed.
func Record(ctx context.Context, registry *sqllock.Registry, key string, last Last) {
	table, lockKey, process := noting(registry, key)
	if process == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if !last.Failed && lost(ctx, registry, key) {
		last.Failed, last.Code = true, nil
	}
	note, ok := table.RunOf(ctx, lockKey)
	if !ok {
		return // to write would forget earlier runs
	}
	var r record
	_ = json.Unmarshal([]byte(note.Text), &r) // a version that writes something else is not known
	r.Key, r.Took, r.Failed, r.Code = key, last.Took.Milliseconds(), last.Failed, last.Code
	r.Process = sqllock.Process{}
	_ = json.Unmarshal([]byte(process), &r.Process)
	r.Runs++
	switch {
	case last.Failed:
		r.Failures++
		if r.Success != nil {
			*r.Success += note.Age.Milliseconds()
		}
	default:
		r.Success = new(int64)
	}
	table.WriteRun(ctx, lockKey, r.text())
}

// lost reports whether the row of the lease that ctx carries is gone or another's, which the lease may not have noticed yet.
func lost(ctx context.Context, registry *sqllock.Registry, key string) bool {
	lease, err := registry.LeaseFrom(ctx, key)
	if err != nil {
		return errors.Is(err, sqllock.ErrLockLost)
	}
	row, found, err := registry.Repository().Peek(ctx, key)
	return err == nil && (!found || row.Holder != lease.Holder())
}

// Skip adds n to the number of calls that found the lock of key taken.
func Skip(ctx context.Context, registry *sqllock.Registry, key string, n int64) {
	table, lockKey, process := noting(registry, key)
	if process == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	table.CountSkips(ctx, lockKey, n)
}

// noting returns where notes about key go. process is this one, or "" if nothing is to be written.
func noting(registry *sqllock.Registry, key string) (table *names.Table, lockKey, process string) {
	lockKey, err := registry.Repository().LockKey(key)
	if err != nil {
		return nil, "", ""
	}
	return engine.TableOf(registry.Repository()).Names, lockKey, engine.LocksOf(registry).ProcessName()
}

// text returns the record as it is written. One that does not fit loses the application, the process, and the end of the key.
func (r *record) text() (text string) {
	const longest = 100 // bytes, of which each may be written as seven characters
	for _, shorten := range []func(){
		func() {},
		func() { r.Process.Application, r.Process.Version = "", "" },
		func() { r.Process = sqllock.Process{} },
		func() { r.Key = strings.ToValidUTF8(r.Key[:min(len(r.Key), longest)], "") + "..." },
	} {
		shorten()
		encoded, _ := json.Marshal(r) // it has only what JSON has, too
		if text = string(encoded); names.Fits(text) {
			break
		}
	}
	return text
}

// Read returns what is known of all jobs, of every region. Its error says why the table was not read.
func Read(ctx context.Context, repository *sqllock.Repository) ([]Run, error) {
	table := engine.TableOf(repository).Names
	notes, err := table.Runs(ctx)
	runs := make([]Run, len(notes))
	var skipped []locktable.Row // no run has said what their keys are
	for i, note := range notes {
		if runs[i] = runOf(note); runs[i].Key == "" {
			skipped = append(skipped, locktable.Row{Region: note.Region, LockKey: note.LockKey})
		}
	}
	named := table.Of(ctx, skipped)
	for i, run := range runs {
		if run.Key == "" {
			runs[i].Key = named.Key(locktable.Row{Region: run.Region, LockKey: run.LockKey})
		}
	}
	return runs, err
}

// Of returns what is known of the job with a key, or the zero value.
func Of(ctx context.Context, repository *sqllock.Repository, key string) (run Run, ok bool) {
	lockKey, err := repository.LockKey(key)
	if err != nil {
		return Run{}, false
	}
	note, _ := engine.TableOf(repository).Names.RunOf(ctx, lockKey)
	return runOf(note), note != names.RunNote{}
}

// Forget deletes what is known of the job with a key, in the region of the repository. known is whether there was anything.
func Forget(ctx context.Context, repository *sqllock.Repository, key string) (known bool, err error) {
	lockKey, err := repository.LockKey(key)
	if err != nil {
		return false, err
	}
	return engine.TableOf(repository).Names.ForgetRuns(ctx, lockKey)
}

func runOf(note names.RunNote) Run {
	run := Run{Region: note.Region, LockKey: note.LockKey}
	if note.Skips > 0 {
		run.Skips, run.Skipped = note.Skips, &note.Skipped
	}
	var r record
	if json.Unmarshal([]byte(note.Text), &r) != nil || r.Runs == 0 {
		return run // a version that writes something else is not known
	}
	run.Key, run.Runs, run.Failures = r.Key, r.Runs, r.Failures
	run.Last = &Last{Process: r.Process, Ended: note.Age, Took: time.Duration(r.Took) * time.Millisecond, Failed: r.Failed, Code: r.Code}
	if r.Success != nil {
		ago := time.Duration(*r.Success)*time.Millisecond + note.Age
		run.Succeeded = &ago
	}
	return run
}
