//go:build !race

package simulation

// RaceDetector says that the race detector is off.
const RaceDetector = false
