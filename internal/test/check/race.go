//go:build race

package check

// RaceDetector says that the race detector is on. It shuffles what runs next, so a seed of the simulation does not
// repeat itself, and it does not know that a world rests while its memory is counted.
const RaceDetector = true
