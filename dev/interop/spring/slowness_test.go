//go:build interop

package spring_test

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// scaled returns a time-to-live that makes up for how busy the machine is now: as many times d as a computation
// takes longer than its processor time, five times at most.
func scaled(d time.Duration) time.Duration {
	const enough = 100 * time.Millisecond
	began, before := time.Now(), processorTime()
	for processorTime()-before < enough { //nolint:revive // it only takes time
	}
	slowness := min(max(float64(time.Since(began))/float64(enough), 1), 5)
	if slowness > 1.5 {
		fmt.Fprintf(os.Stderr, "the machine is %.1f times as slow as it could be: leases that must end last %.1f times as long\n", slowness, slowness)
	}
	return time.Duration(slowness * float64(d)).Truncate(time.Second)
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
