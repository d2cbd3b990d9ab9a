package contender

import (
	"context"
	"errors"
)

// A JointSession acquires several locks as one.
type JointSession interface {
	Session
	LockAll(ctx context.Context, keys []string) (Unlock, error)
}

// A PermitSession has semaphores.
type PermitSession interface {
	Session
	// Acquire acquires one of the permits of key, waiting until ctx ends.
	Acquire(ctx context.Context, key string, permits int) (Unlock, error)
}

// A ReadSession has read locks.
type ReadSession interface {
	Session
	RLock(ctx context.Context, key string) (Unlock, error)
}

// A TrySession tries to acquire a lock once, without waiting.
type TrySession interface {
	Session
	// TryLock returns [ErrTaken] if the lock is held.
	TryLock(ctx context.Context, key string) (Unlock, error)
}

// ErrTaken is returned by [TrySession].
var ErrTaken = errors.New("the lock is held")

// The loads that only take contenders which name them.
var (
	several     = []string{tenKeys, permits, readers} // single locks do for all of these, in their way
	singleLocks = []string{tenKeys, permits}
)

const (
	tenKeys = "ten keys"
	permits = "permits"
	readers = "readers"
)

// Reasons why a contender that needs a connection for each lock is left out of a load.
const manyConnections = "ten connections for each of 16 workers: the pool has fewer, and they would wait for each other for ever"
