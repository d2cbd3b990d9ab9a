package locktable

import "time"

// A Claim is a row as one acquisition wants it.
type Claim struct {
	LockKey string        // LOCK_KEY
	Holder  string        // CLIENT_ID of the acquisition: see [Table.NewHolder]
	TTL     time.Duration // how long the row is to last from now
	More    []string      // further LOCK_KEYs, higher and in order, of a joint claim
}

func (c Claim) id() rowID { return rowID{c.LockKey, c.Holder} }

// A rowID is a row of the region as one holder knows it. The result of a statement for many
// rows is matched by both: one holder may be in the rows of several keys.
type rowID struct{ lockKey, holder string }

// A Row is one row of the lock table. The root package documents the fields.
type Row struct {
	Region, LockKey string
	Holder          string
	Age             time.Duration
	Left            time.Duration
}

// Expired reports whether any contender may take the row over.
func (r Row) Expired() bool { return r.Left < 0 }

// A Result is the answer to an attempt to acquire.
type Result struct {
	// Acquired reports whether the row carries the claim's holder now.
	Acquired bool
	// Token is the fencing token of the acquisition.
	Token int64
	// Row is the row that is in the way if Acquired is false. It is zero if the row went
	// away in the meantime.
	Row Row
	// Batched reports whether a statement for several rows gave the answer.
	Batched bool
}

// An Outcome is what became of a row that was to be renewed beside others.
type Outcome int

const (
	// Lost means that there is no such row, or that it has expired.
	Lost Outcome = iota
	// Renewed means that the row lasts for its time-to-live again.
	Renewed
	// Pinned means that the row is there, but that a transaction has pinned it or is
	// changing it, so that it was not renewed.
	Pinned
)

// A GuardResult is what a guarded transaction found.
type GuardResult int

const (
	// NotHeld means that there is no such row, or that it has expired.
	NotHeld GuardResult = iota
	// Guarded means that the transaction has pinned the row.
	Guarded
	// StaleSnapshot means that the row is there, but that the transaction's snapshot is
	// older and does not show it.
	StaleSnapshot
)
