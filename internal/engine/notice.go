package engine

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/names"
	"github.com/sqllock/sqllock/internal/report"
)

const (
	// noticeAfter is how long callers wait before others are told, and noticeEvery the pause between two statements that
	// tell them, while there are such callers.
	noticeAfter, noticeEvery = 5 * time.Second, 5 * time.Second
	// maxNotice is how many locks others are told of at most: those that have been waited for for the longest time. One
	// row has room for about as many.
	maxNotice = 20
)

// A notice is a row of the table of names. It shows other processes for which locks callers of a registry wait, and for how
// long. One goroutine at a time uses it.
type notice struct {
	table   *locktable.Table
	id      string               // of the row, as a holder; "" until there was one
	named   map[string]time.Time // when the LOCK_KEYs that it has were named; empty if the row is to be ignored
	written time.Time
}

// isUp reports whether others may see that callers wait.
func (n *notice) isUp() bool { return len(n.named) > 0 }

// write writes what callers have waited for for long, at most once in noticeEvery; and once that there is nothing any more.
// Readers ignore a row that is not written again, which covers a write that has failed.
func (n *notice) write(ctx context.Context, now time.Time, long []report.Long) {
	if len(long) == 0 && !n.isUp() || len(long) > 0 && now.Sub(n.written) < noticeEvery {
		return
	}
	long = long[:min(len(long), maxNotice)]
	waits, keys, allNamed := make([]names.Wait, len(long)), make(map[string]string), make(map[string]time.Time)
	for i, w := range long {
		waits[i] = names.Wait{LockKey: w.LockKey, Waited: w.Waited, Callers: w.Callers}
		named := n.named[w.LockKey]
		if now.Sub(named) >= namedFor { // that of a semaphore is not held: nothing else names it
			keys[w.LockKey], named = w.Key, now
		}
		allNamed[w.LockKey] = named
	}
	if n.id == "" {
		n.id = n.table.IDs.Next()
	}
	n.written = now
	if n.table.Names.WriteWaits(ctx, n.id, waits, keys) || len(long) == 0 {
		n.named = allNamed
	}
}

// withdraw writes that callers wait for nothing any more, if the row says that some do. The caller waits for it.
func (n *notice) withdraw(ctx context.Context) {
	if !n.isUp() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keptNameTimeout)
	defer cancel()
	n.table.Names.WriteWaits(ctx, n.id, nil, nil)
}
