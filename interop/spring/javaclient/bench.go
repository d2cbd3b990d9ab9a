package javaclient

import (
	"context"
	"strconv"
	"time"
)

// A Load is what [Client.Bench] puts on a client.
type Load struct {
	// Threads lock and unlock as fast as they can.
	Threads int
	// Keys is how many keys they choose from at random; with 0 each thread has its
	// own, and nobody waits.
	Keys int
	// Duration is how long.
	Duration time.Duration
}

// A Result is what a [Load] came to.
type Result struct {
	Pairs    int           // of lock and unlock that succeeded
	Failures int           // that threw an exception
	Took     time.Duration // all together
	P50, P99 time.Duration // of a pair
}

// PerSecond returns the pairs per second.
func (r Result) PerSecond() float64 { return float64(r.Pairs) / r.Took.Seconds() }

// Bench measures lock and unlock. Start the JVM with options for speed, {"-Xmx1g"}
// say, and let it run once before the run that counts: its code is compiled
// meanwhile.
func (c *Client) Bench(ctx context.Context, load Load) (Result, error) {
	values, err := c.jvm.call(ctx, c.name, "bench", "bench", strconv.Itoa(load.Threads), strconv.Itoa(load.Keys),
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
