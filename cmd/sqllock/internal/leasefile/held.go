package leasefile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/clientid"
	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
)

// A held is the lease of a file in the table in which it was acquired.
type held struct {
	*File
	repository *sqllock.Repository
	connection *connect.Connection
}

// with calls fn with the lease of a file. The table and the keys are those of the file, whatever the flags are.
func (f *File) with(ctx context.Context, flags *connect.Flags, fn func(held) error) error {
	flags.Prefix, flags.Region, flags.PlainKeys = f.Prefix, f.Region, f.PlainKeys
	c, err := flags.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	// A row that release keeps is still called after the process that has acquired it, which may be at work, as may its renewer:
	// none of them writes names by this id, or calls ReleaseAll.
	r, err := flags.Repository(ctx, c, sqllock.RepositoryOptions{TTL: f.ttl(), DisableFencing: true, ClientID: clientid.Of(f.Holder)})
	if err != nil {
		return err
	}
	return flags.WithTableHint(c, fn(held{f, r, c}))
}

// change calls fn for each row at the same time, so that one statement changes many. It reports whether all have
// returned true.
func (h held) change(fn func(key string) (bool, error)) (all bool, err error) {
	var wg sync.WaitGroup
	done, errs := make([]bool, len(h.Keys)), make([]error, len(h.Keys))
	for i, key := range h.Keys {
		wg.Go(func() { done[i], errs[i] = fn(key) })
	}
	wg.Wait()
	all = true
	for i := range h.Keys {
		all = all && done[i]
		if err == nil {
			err = errs[i]
		}
	}
	return all, err
}

// extend makes the lease last for ttl from now. If it returns false, the lease is lost.
func (h held) extend(ctx context.Context, ttl time.Duration) (bool, error) {
	return h.change(func(key string) (bool, error) { return h.repository.Renew(ctx, key, h.Holder, ttl) })
}

// release deletes the rows, also if they have expired, which makes room for others.
func (h held) release(ctx context.Context) (bool, error) {
	return h.change(func(key string) (bool, error) { return h.repository.Delete(ctx, key, h.Holder) })
}

// keepTimeout limits keep, which would wait for an answer for as long as the lease lasts.
const keepTimeout = 10 * time.Second

// keep leaves the rows to expire after d, without a holder. One statement changes all of them; a row that a transaction has pinned
// then has a statement of its own.
func (h held) keep(ctx context.Context, d time.Duration) (bool, error) {
	lockKeys := make([]string, len(h.Keys))
	for i, key := range h.Keys {
		var err error
		if lockKeys[i], err = h.repository.LockKey(key); err != nil {
			return false, err
		}
	}
	slices.Sort(lockKeys)
	limited, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	claim := locktable.Claim{LockKey: lockKeys[0], More: lockKeys[1:], Holder: h.Holder, TTL: h.ttl()}
	kept, err := engine.TableOf(h.repository).Releases.Keep(limited, claim, d)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return false, failure.As(sqllock.ErrDatabase, "release", fmt.Errorf("no answer for %v", keepTimeout))
	}
	return kept, failure.Of(err, h.Lock)
}

// minHoldLeft returns how long the rows still have to stay; negative or 0 means no longer. By the database's clock the hosts
// of two steps agree on that; rows without EXPIRED_AFTER tell the time of the last renewal alone.
func (h held) minHoldLeft(rows map[string]sqllock.Row) time.Duration {
	if h.minHold() == 0 {
		return 0
	}
	age := time.Since(h.Acquired)
	if h.repository.Layout() != dialect.Spring6 {
		age = rows[h.Keys[0]].Age
	}
	return h.minHold() - age
}

// loss returns an error if the lease is not held any more. It says what the rows tell of the cause.
func (h held) loss(ctx context.Context) error {
	rows, err := h.repository.PeekAll(ctx, h.Keys...)
	if err != nil {
		return err
	}
	return h.lossBy(rows)
}

// lossBy is loss for rows that were read.
func (h held) lossBy(rows map[string]sqllock.Row) error {
	for _, key := range h.Keys {
		switch row, ok := rows[key]; {
		case !ok:
			return h.lost("its row is gone: it was released or removed before, or expired")
		case row.Released() && clientid.Of(row.Holder) == clientid.Of(h.Holder):
			return h.lost("it was released before, and is free")
		case row.Released():
			return h.lost("another process had it, and has released it: %s", format.Printable(row.Holder))
		case row.Kept() && clientid.Of(row.Holder) == clientid.Of(h.Holder):
			return h.lost("it was released before, and has a minimum hold")
		case row.Holder == h.Holder && row.Expired():
			return h.lost("it ended %s ago, and no other process has acquired it", format.Duration(-row.Left))
		case row.Holder != h.Holder && row.Expired():
			return h.lost("another process had it, whose lease ended %s ago: %s", format.Duration(-row.Left), format.Printable(row.Holder))
		case row.Kept():
			return h.lost("another process had it, and has released it with a minimum hold: %s", format.Printable(row.Holder))
		case row.Holder != h.Holder:
			return h.lost("it is held by %s, for %s", format.Printable(row.Holder), format.Duration(row.Age))
		}
	}
	return nil
}

// isElsewhere reports whether the lease was acquired in another database, or this one has another name now.
func (h held) isElsewhere() bool { return h.Database != databaseOf(h.connection) }

// lost returns the error of a lost lease.
func (h held) lost(cause string, args ...any) error {
	text := fmt.Sprintf(cause, args...)
	if h.isElsewhere() {
		text += fmt.Sprintf("; it was acquired in %s, and this is %s", format.Printable(h.Database), databaseOf(h.connection))
	}
	return &exit.Error{Code: exit.LockLost, Err: fmt.Errorf("the lock %q is lost: %s", h.Lock, text)}
}
