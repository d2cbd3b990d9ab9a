//go:build linux

package reliability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/leader"
)

// leaderOfRoles leads the roles of a task for one term, each with a registry of its own, so that their
// leases are renewed at different moments. It prints "leads" for each, and "ended" with the
// time before the last check that found the context not done, and the number of the role.
func leaderOfRoles(ctx context.Context, do task, _ <-chan string) error {
	_, first, err := do.open(ctx, 0, sqllock.RegistryOptions{})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for i, role := range do.Keys {
		pause(ctx, rand.N(do.TTL/3/time.Duration(len(do.Keys))))
		registry, err := sqllock.NewRegistry(first.Repository(), &sqllock.RegistryOptions{TTL: do.TTL})
		if err != nil {
			return err
		}
		elector, err := leader.New(registry, role, nil)
		if err != nil {
			return err
		}
		all.Go(func() {
			running, once := context.WithCancel(ctx)
			defer once()
			_ = elector.Run(running, func(ctx context.Context, _ *sqllock.Lease) error {
				defer once() // it leads for one term
				fmt.Println("leads", role)
				var alive time.Time
				for asked := time.Now(); ctx.Err() == nil; asked = time.Now() {
					alive = asked
					time.Sleep(5 * time.Millisecond)
				}
				fmt.Println("ended", alive.UnixNano(), i)
				return ctx.Err()
			})
		})
	}
	all.Wait()
	return nil
}
