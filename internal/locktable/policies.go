package locktable

import (
	"time"

	"github.com/sqllock/sqllock/internal/dbcall"
)

// PinnedTimeout is how long a statement about a row waits for a transaction that has the row pinned.
const PinnedTimeout = time.Second

// releaseTimeout is the same for a release. If that fails, the lock stays taken although it has no holder: on a slow
// server contenders may lock the row for a second.
const releaseTimeout = 3 * time.Second

// The limits of all statements.
var (
	acquiring  = dbcall.Policy{Op: "acquire", Races: 10, Answer: answerTimeout}
	releasing  = dbcall.Policy{Op: "release", Races: dbcall.Always, Pinned: releaseTimeout, Answer: answerTimeout}
	renewing   = dbcall.Policy{Op: "renew", Races: dbcall.Always, Answer: answerTimeout}                         // pinned is an argument
	discarding = dbcall.Policy{Op: "release", Races: dbcall.Always, Pinned: PinnedTimeout, Answer: batchTimeout} // many rows of leftovers
	keeping    = dbcall.Policy{Op: "keep", Races: dbcall.Always, Pinned: PinnedTimeout, Answer: answerTimeout}
	reading    = dbcall.Policy{Op: "read", Races: dbcall.Always, Pinned: PinnedTimeout, Lockless: true, Answer: answerTimeout}
	// A poll for many is not that of one row, so it does not depend on a time-to-live.
	polling  = dbcall.Policy{Op: "read", Races: dbcall.Always, Pinned: PinnedTimeout, Lockless: true, Answer: batchTimeout}
	guarding = dbcall.Policy{Op: dbcall.GuardOp}

	renewingAll     = dbcall.Policy{Op: "renew all", Races: dbcall.Always, Pinned: PinnedTimeout}
	listing         = dbcall.Policy{Op: "list", Races: dbcall.Always, Pinned: PinnedTimeout, Lockless: true}
	counting        = dbcall.Policy{Op: "count", Races: dbcall.Always, Pinned: PinnedTimeout, Lockless: true}
	deletingExpired = dbcall.Policy{Op: "delete expired locks", Races: dbcall.Always, Pinned: PinnedTimeout}
	deletingClient  = dbcall.Policy{Op: "release all", Races: dbcall.Always, Pinned: PinnedTimeout}
)

// The time limits of a batch, see [batched].
const (
	// batchTimeout is when a batch is given up. A dead connection does not report that.
	batchTimeout = 5 * time.Second
	// batchSlowAfter is how long others wait behind a batch before they use another connection, of maxLanes at most.
	batchSlowAfter = 100 * time.Millisecond
)

// answerTimeout is how long an answer is waited for at least. A shorter lease would be over by then, but what holds
// the database up may pass.
const answerTimeout = 10 * time.Second
