package page

import (
	"fmt"
	"testing"

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
