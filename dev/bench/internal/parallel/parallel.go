// Package parallel does things some at a time.
package parallel

import "golang.org/x/sync/errgroup"

// Do calls do with 0 to n-1, so many of them at once, and returns the first error.
func Do(n, atOnce int, do func(int) error) error {
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i := range n {
		all.Go(func() error { return do(i) })
	}
	return all.Wait()
}
