package contract

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// A lease as short as brief is lost if the machine stands still for a part of it.
	spoils = short / 2
	// mostPatient is how many times as long the leases of the last attempt are. They must be much
	// shorter than ttl.
	mostPatient = 4
)

// stoodStill is [machine.Watch.StoodStill].
type stoodStill func(from, to time.Time) time.Duration

// attempts runs a test in real time, and reports whether it passes. It repeats it with longer leases as
// long as it fails while the machine stands still: that says nothing.
func (c Cell) attempts(t *testing.T, stoodStill stoodStill, test test) (passed bool) {
	t.Helper()
	for patience := time.Duration(1); ; patience *= 2 {
		began := time.Now()
		a := attemptOf(t, func(a *attempt) { test.run(newFixture(a, c, patience)) })
		if !a.Failed() {
			return true
		}
		for _, line := range a.log {
			t.Log(line)
		}
		still := stoodStill(began, time.Now())
		if patience == mostPatient || still < spoils {
			return false
		}
		t.Logf("the machine stood still for %v: again with leases %d times as long", still, 2*patience)
	}
}

// An attempt is what testing.T is to a test, but its failure is not yet one of the test.
type attempt struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	ended    bool
	failed   bool
	log      []string
	cleanups []func()
}

// attemptOf runs one attempt and its cleanups.
func attemptOf(t *testing.T, run func(*attempt)) *attempt {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &attempt{TB: t, ctx: ctx}
	done := make(chan struct{})
	go func() { // FailNow ends it
		defer close(done)
		defer a.cleanUp()
		defer cancel() // before the cleanups, as in package testing
		run(a)
	}()
	<-done
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	return a
}

func (a *attempt) cleanUp() {
	a.mu.Lock()
	n := len(a.cleanups)
	if n == 0 {
		a.mu.Unlock()
		return
	}
	last := a.cleanups[n-1]
	a.cleanups = a.cleanups[:n-1]
	a.mu.Unlock()
	defer a.cleanUp() // even if this one fails the test
	last()
}

func (a *attempt) Context() context.Context { return a.ctx }

func (a *attempt) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, f)
}

func (a *attempt) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

func (a *attempt) Fail() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mustLast()
	a.failed = true
}

func (a *attempt) FailNow() {
	a.Fail()
	runtime.Goexit()
}

func (a *attempt) note(text string) {
	line := strings.TrimSpace(strings.Join(callers(), " < ") + ": " + text)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mustLast()
	a.log = append(a.log, line)
}

// mustLast panics if a goroutine has outlived its attempt, as package testing does.
func (a *attempt) mustLast() {
	if a.ended {
		panic("a goroutine has outlived the attempt of " + a.Name())
	}
}

// callers returns the lines of this package that have led to a note.
func callers() (lines []string) {
	frames := make([]uintptr, 16)
	for all := runtime.CallersFrames(frames[:runtime.Callers(4, frames)]); ; {
		frame, more := all.Next()
		if strings.Contains(frame.File, "test/contract/") && !strings.HasSuffix(frame.File, "attempt.go") {
			lines = append(lines, fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line))
		}
		if !more {
			return lines
		}
	}
}

func (a *attempt) Log(args ...any)                 { a.note(fmt.Sprintln(args...)) }
func (a *attempt) Logf(format string, args ...any) { a.note(fmt.Sprintf(format, args...)) }

func (a *attempt) Error(args ...any) {
	a.note(fmt.Sprintln(args...))
	a.Fail()
}

func (a *attempt) Errorf(format string, args ...any) {
	a.note(fmt.Sprintf(format, args...))
	a.Fail()
}

func (a *attempt) Fatal(args ...any) {
	a.note(fmt.Sprintln(args...))
	a.FailNow()
}

func (a *attempt) Fatalf(format string, args ...any) {
	a.note(fmt.Sprintf(format, args...))
	a.FailNow()
}
