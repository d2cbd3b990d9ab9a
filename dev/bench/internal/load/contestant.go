package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/parallel"
	"github.com/sqllock/sqllock/internal/test/proc"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// holdAtMost is how long a caller of a contest holds what it has acquired, at most.
const holdAtMost = 10 * time.Millisecond

// A competition returns a function by which a session's callers acquire what those of one kind want.
type competition func(s contender.Session, key, kind string) (acquire, error)

type acquire func(context.Context) (contender.Unlock, error)

func oneLock(s contender.Session, key, _ string) (acquire, error) {
	return func(ctx context.Context) (contender.Unlock, error) { return s.Lock(ctx, key) }, nil
}

// The kinds of callers that want more than others.
const (
	sixKeys      = "six keys"
	threePermits = "three permits"
	writer       = "writer"
)

func jointLock(s contender.Session, key, kind string) (acquire, error) {
	keys := make([]string, 6)
	for i := range keys {
		keys[i] = fmt.Sprint(key, " ", i)
	}
	return func(ctx context.Context) (contender.Unlock, error) {
		if kind == sixKeys {
			return s.(contender.JointSession).LockAll(ctx, keys)
		}
		return s.Lock(ctx, keys[rand.N(len(keys))]) //nolint:gosec // no secret
	}, nil
}

// registryOf is for contests that only sqllock enters.
func registryOf(s contender.Session) *sqllock.Registry {
	return s.(interface{ Registry() *sqllock.Registry }).Registry()
}

func permits(s contender.Session, key, kind string) (acquire, error) {
	const most = 3
	n := 1
	if kind == threePermits {
		n = most
	}
	all, err := semaphore.New(registryOf(s), key, most)
	return func(ctx context.Context) (contender.Unlock, error) { return contender.Unlocking(all.Acquire(ctx, n)) }, err
}

func readWriteLock(s contender.Session, key, kind string) (acquire, error) {
	lock, err := rwlock.New(registryOf(s), key)
	return func(ctx context.Context) (contender.Unlock, error) {
		if kind == writer {
			return contender.Unlocking(lock.Lock(ctx))
		}
		return contender.Unlocking(lock.RLock(ctx))
	}, err
}

// An entry is what a player does in a contest.
type entry struct {
	Contest  string
	Key      string
	Lasts    time.Duration
	Entrants []entrant
}

// take opens the sessions of all entrants, has their callers compete from the parent's word on, and prints the calls.
func (e *entry) take(ctx context.Context, who contender.Contender, at contender.Place) (err error) {
	c := contests[slices.IndexFunc(contests, func(c contest) bool { return c.name == e.Contest })]
	var sessions []contender.Session
	defer func() {
		for _, s := range sessions {
			err = errors.Join(err, s.Close())
		}
	}()
	var callers []func(context.Context) ([]call, error)
	for _, one := range e.Entrants {
		s, err := who.Open(ctx, at)
		if err != nil {
			return err
		}
		sessions = append(sessions, s)
		if err := pair(ctx, s, fmt.Sprint("warm ", e.Key, one.Number)); err != nil {
			return err
		}
		get, err := c.open(s, e.Key, one.Kind)
		if err != nil {
			return err
		}
		for range one.Callers {
			callers = append(callers, func(ctx context.Context) ([]call, error) { return compete(ctx, one.Number, get) })
		}
	}
	fmt.Println(proc.Now())
	bufio.NewScanner(os.Stdin).Scan()
	ctx, cancel := context.WithTimeout(ctx, e.Lasts)
	defer cancel()
	calls := make([][]call, len(callers))
	if err := parallel.Do(len(callers), len(callers), func(i int) (err error) {
		calls[i], err = callers[i](ctx)
		return err
	}); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(slices.Concat(calls...))
}

// compete is what one caller does until ctx ends.
func compete(ctx context.Context, number int, get acquire) (calls []call, err error) {
	for ctx.Err() == nil {
		one := call{Entrant: number, Asked: proc.Now()}
		unlock, err := get(ctx)
		one.Ended, one.Acquired = proc.Now(), err == nil
		calls = append(calls, one)
		if ctx.Err() != nil && !one.Acquired {
			return calls, nil // it was still waiting
		}
		if err != nil {
			return nil, err
		}
		time.Sleep(rand.N(holdAtMost)) //nolint:gosec // no secret
		if err := unlock(context.WithoutCancel(ctx)); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "a release has failed:", err) // pglock's may, and then the others wait for a lease to end
		}
	}
	return calls, nil
}
