package locktable

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
)

// An attempt in order that has lost races, or has met a pinned row, is not acquired, as any other. Its row is not read.
func TestAcquire_InOrderIsNotAcquired(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]sqltext.Class{"a lost race": sqltext.Transient, "a pinned row": sqltext.Blocked} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := dbcall.Server{Classify: func(error) sqltext.Class { return class }}
				table := unopened(server)
				table.Acquisitions.plain = batched[Result]{
					one: func(context.Context, Claim) batch.Outcome[Result] {
						return batch.Outcome[Result]{Err: io.ErrNoProgress}
					},
					policy: acquiring, timeout: batchTimeout, server: server, onLeave: table.Leftovers.leaveAcquisition,
				}
				table.Acquisitions.plain.makeBatcher(&table.keepsValues)
				got, err := table.Acquisitions.Acquire(t.Context(), Claim{LockKey: "k", Holder: "mine", TTL: time.Minute, Turn: 1})
				check.Must(t, err)
				check.Equal(t, "acquired", got.Acquired, false)
			})
		})
	}
}

// unopened returns a table whose verbs a test makes itself, as far as it needs them.
func unopened(server dbcall.Server) *Table {
	table := &Table{database: &database{server: server}}
	table.makeVerbs()
	return table
}
