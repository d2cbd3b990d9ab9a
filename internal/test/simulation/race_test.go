//go:build race

package simulation_test

// raceEnabled says that the race detector is on, which shuffles what runs next: then a seed
// does not repeat itself.
const raceEnabled = true
