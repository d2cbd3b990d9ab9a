//go:build race

package simulation

// RaceDetector says that the race detector is on. It shuffles what runs next, so a seed does not
// repeat itself, and it does not know that a world rests while its memory is counted.
const RaceDetector = true
