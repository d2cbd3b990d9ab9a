//go:build !race

package check

// RaceDetector says that the race detector is off.
const RaceDetector = false
