package simulation_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/simulation"
)

// TestReductionsCanBeApplied makes the plans of many seeds as simple as they can be, in steps
// that depend on each other.
func TestReductionsCanBeApplied(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		plan, changes := simulation.NewPlan(seed), ""
		for {
			possible := plan.Reductions(0)
			if len(possible) == 0 {
				break
			}
			changes += " " + possible[int(seed)%len(possible)]
			plan = simulation.NewPlan(seed)
			check.Must(t, plan.Apply(changes))
		}
		if len(plan.Processes) != 1 || plan.Processes[0].Workers != 1 || plan.Keys != 1 || len(plan.Faults) != 0 {
			t.Errorf("seed %d: %v", seed, &plan)
		}
	}
}
