//go:build linux

package reliability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/sqllock/sqllock"
)

const (
	fencedKeys       = 32
	fencedGoroutines = 4
)

// The goroutines of a child acquire random locks until it is killed, and record their tokens.
func fencedHolders(ctx context.Context, do task, _ <-chan string) error {
	_, registry, err := do.open(ctx, fencedGoroutines, sqllock.RegistryOptions{IdleBetweenTries: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	fmt.Println("working")
	var all sync.WaitGroup
	failures := make(chan error, fencedGoroutines)
	for range fencedGoroutines {
		all.Go(func() {
			for {
				if err := fenced(ctx, registry, do); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	return <-failures
}

// fenced acquires one lock, records its token and usually releases it.
func fenced(ctx context.Context, r *sqllock.Registry, do task) error {
	n := rand.N(fencedKeys)
	key := fmt.Sprint(n)
	lock, err := r.Obtain(key)
	if err != nil {
		return err
	}
	if rand.N(500) == 0 {
		lock = lock.WithMinHold(do.TTL / 2)
	}
	var lease *sqllock.Lease
	if rand.N(8) == 0 {
		lease, err = lock.TryLockFor(ctx, do.TTL/4)
	} else {
		lease, err = lock.TryLock(ctx)
	}
	switch {
	case errors.Is(err, sqllock.ErrNotAcquired):
		return nil
	case errors.Is(err, sqllock.ErrDatabase): // the server is down, or too busy with other processes
		pause(ctx, 5*time.Millisecond)
		return nil
	case err != nil:
		return err
	}
	if err := note(filepath.Join(do.Dir, key), lease); err != nil {
		return err
	}
	switch rand.N(500) {
	case 0: // let it expire
	default:
		_ = lease.Unlock(ctx) // on a busy machine the lease may be lost
	}
	return nil
}

// note appends the token of a lease to a file. A second line records that the lease was still
// valid after the first line had been written: so the holder wrote it, even if this process
// was stopped in between.
func note(path string, lease *sqllock.Lease) error {
	turn := flock.New(path)
	if err := turn.Lock(); err != nil { // otherwise another line could come in between
		return err
	}
	defer turn.Close()
	if lease.Context().Err() != nil {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := fmt.Fprintf(file, " %020d\n", lease.Token()); err != nil {
		return err
	}
	if lease.Context().Err() != nil {
		return nil
	}
	_, err = fmt.Fprintf(file, "+%020d\n", lease.Token())
	return err
}
