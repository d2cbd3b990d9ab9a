package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/observe"
)

// A recorder forgets the roles that this process campaigns for no more.
func TestARecorderForgetsEndedElections(t *testing.T) {
	t.Parallel()
	r := new(Recorder)
	report := func(role string, states ...observe.ElectorState) {
		for _, state := range states {
			r.elected(observe.Election{Role: role, State: state})
		}
	}
	report("stays", observe.ElectorCandidate, observe.ElectorCandidate, observe.ElectorRetired)
	for i := range 2_000 {
		report(fmt.Sprint(i), observe.ElectorCandidate, observe.ElectorLeader, observe.ElectorRetired)
	}
	got := r.record()
	if len(got.elections) != 1 || got.elections[0].role != "stays" || len(got.keys) > remembered || len(got.events) > 2*recorded {
		t.Errorf("%d roles and %d events after 2000 elections", len(got.elections), len(got.events))
	}
}

// A recorder keeps less than a megabyte, however long keys, names of jobs and errors are. It does not run in
// parallel with others, whose memory would count.
func TestARecorderKeepsLessThanAMegabyte(t *testing.T) {
	r := new(Recorder)
	before := heap()
	for i := range 1_100 { // more than are remembered, and some again
		for _, length := range []int{100, 20_000} {
			long := func(what string) string { return fmt.Sprint(what, i%1000, strings.Repeat("<ü", length/3)) }
			err := errors.New(long("error"))
			r.acquired(observe.AcquireEnd{AcquireStart: observe.AcquireStart{Key: long("key")}, Err: err, Outcome: observe.OutcomeError})
			r.ended(observe.LeaseEnd{Key: long("key"), Reason: observe.EndUnlocked, Err: err})
			r.ran(observe.JobRun{Job: long("job"), Outcome: observe.JobFailed, Err: err, Began: time.Now()})
			r.renewed(observe.Renewal{TTL: time.Duration(i % 10), Err: err})
		}
	}
	if kept := heap() - before; kept > 1_000_000 {
		t.Errorf("%d bytes are kept", kept)
	}
	events, err := json.Marshal(r.record().events)
	if len(events) > 200_000 || err != nil {
		t.Errorf("the events have %d bytes, %v", len(events), err)
	}
	runtime.KeepAlive(r)
}

// heap returns how many bytes are reachable.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers have kept
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
