package leader

import (
	"cmp"
	"time"

	"github.com/sqllock/sqllock/internal/clientid"
)

// A Leader is who leads a role, as its row says. The zero Leader means that there is none.
type Leader struct {
	// Client is the client id of the leader's repository: see [sqllock.RepositoryOptions].ClientID. It has room for a
	// host and a port, so that others can forward requests to the leader. For a leader in Java it is the whole
	// CLIENT_ID.
	Client string
	// Holder is CLIENT_ID: each term has its own.
	Holder string
	// Age is how long this leader has led, with the limits of [sqllock.Row].Age.
	Age time.Duration
	// Left is how long the lease lasts unless it is renewed, by the database's clock.
	Left time.Duration
	// Me reports whether the leader is the elector that was asked. It is false in what [Current] and [Observe]
	// return, which belong to no elector.
	Me bool
}

// clientOf returns the client id of a CLIENT_ID, or all of it if it was not made by sqllock.
func clientOf(holder string) string { return cmp.Or(clientid.Of(holder), holder) }
