package sqllock

import "time"

// A Row is one row of the lock table.
type Row struct {
	// Region and LockKey are the primary key. LockKey is what the [KeyMapper] made of
	// the user's key.
	Region, LockKey string
	// Holder is CLIENT_ID: one acquisition of one client.
	Holder string
	// Age is the time since CREATED_DATE. It counts from the acquisition, in the
	// four-column layout from the last renewal, and in rows that Spring 7 took over from
	// another holder from the row's first insertion.
	Age time.Duration
	// Left is the time until the lease ends, by the database's clock. It is negative in
	// an expired row.
	Left time.Duration
}

// Expired reports whether any contender may take the row over.
func (row Row) Expired() bool { return row.Left < 0 }

// isFree reports whether an attempt to acquire is worthwhile: there was no row, or its lease
// is over.
func isFree(row Row) bool { return row == (Row{}) || row.Expired() }
