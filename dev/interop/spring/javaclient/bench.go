package javaclient

import (
	"context"
	"strconv"
	"time"
)

// A Load is the load of [Client.Bench].
type Load struct {
	// Threads is the number of threads that lock and unlock without a pause, each with a key of its own.
	Threads int
	// Duration is how long the load lasts.
	Duration time.Duration
}

// A Result is the result of a [Load].
type Result struct {
	Pairs    int           // of lock and unlock that succeeded
	Failures int           // that threw an exception
	Took     time.Duration // all together
	P50, P99 time.Duration // of a pair
}

// PerSecond returns the pairs per second.
func (r Result) PerSecond() float64 { return float64(r.Pairs) / r.Took.Seconds() }

// Bench measures lock and unlock. Start the JVM with options for speed, such as {"-Xmx1g"}, and
// run Bench once before the measurement, so that the code is compiled.
func (c *Client) Bench(ctx context.Context, load Load) (Result, error) {
	values, err := c.jvm.call(ctx, c.name, "bench", "bench", strconv.Itoa(load.Threads),
		strconv.FormatFloat(load.Duration.Seconds(), 'f', 3, 64))
	if err != nil {
		return Result{}, err
	}
	n, err := integers(values, 5)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Pairs: n[0], Failures: n[1], Took: time.Duration(n[2]) * time.Millisecond,
		P50: time.Duration(n[3]) * time.Microsecond, P99: time.Duration(n[4]) * time.Microsecond,
	}, nil
}
