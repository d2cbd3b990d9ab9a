// Package trace notes the functions that are entered, in a build whose sources package way has changed.
package trace

import "sync"

// A Step is a function that was entered.
type Step struct{ Function, File string }

var (
	mu    sync.Mutex
	on    bool
	steps []Step
)

// Enter is what each function of a traced build calls first.
func Enter(function, file string) {
	mu.Lock()
	defer mu.Unlock()
	if on {
		steps = append(steps, Step{function, file})
	}
}

// Of returns the functions that are entered, in any goroutine, until do returns.
func Of(do func()) []Step {
	mu.Lock()
	on, steps = true, nil
	mu.Unlock()
	do()
	mu.Lock()
	defer mu.Unlock()
	on = false
	return steps
}
