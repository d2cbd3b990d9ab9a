package page

import (
	"context"
	"net/http"

	"github.com/sqllock/sqllock"
)

// DefaultLimit is the default of [Options.Limit].
const DefaultLimit = 1000

// Options are the settings of a page. A zero field means its default.
type Options struct {
	// Title stands above the page. Default "Locks".
	Title string

	// Names are keys that may be in the table, which contains only a hash of most keys. The page
	// shows them instead of the hash. It knows those that the registry holds or waits for.
	Names []string

	// Permits are how many permits the semaphores have (package semaphore), by key: for "render 2/3".
	// Without it, the page shows "2 permits".
	Permits map[string]int

	// Roles are the keys of elections (package leader), whose leaders are shown on their own. The
	// page knows those that the Recorder has seen this process campaign for.
	Roles []string

	// Limit is how many rows are read and shown at most: those that are held first, the oldest
	// before others. Default [DefaultLimit]. A key that is searched for is found beyond it.
	Limit int

	// Recorder, if set, has what happened in this process, which the page shows.
	Recorder *Recorder

	// Check, if set, returns what is right and wrong with the database. It is called when the
	// page is looked at, at most once in ten minutes, and may take its time.
	Check func(ctx context.Context) ([]Finding, error)

	// AllowUnlock, if set, makes the page offer to remove rows. It is called before each removal
	// with the row as it was shown. If it returns an error, the row stays and the viewer sees the
	// error: to allow it to some viewers, or for some keys. It may return nil for all.
	//
	// Of a row beyond Limit only Region, LockKey and Holder are set. So a rule for some keys compares
	// LockKey with that of [sqllock.Repository.LockKey], and not Key.
	AllowUnlock func(r *http.Request, row sqllock.Row) error

	// OnUnlock, if set, is called after each removal that AllowUnlock has allowed, whatever its
	// result: for the audit log.
	OnUnlock func(r *http.Request, u Unlock)

	// CrossOrigin, if set, decides which requests of other sites may unlock. Default none. It is
	// for a page behind a proxy that changes the host of requests.
	CrossOrigin *http.CrossOriginProtection
}

// An Unlock is the attempt to remove the row of a lock.
type Unlock struct {
	// Row is the row as the viewer saw it: as AllowUnlock receives it.
	Row sqllock.Row
	// Removed reports whether the row was removed. It was not if Err is set, or if the lock was
	// released or acquired again since the viewer saw it.
	Removed bool
	// Err is the error of the database, or nil.
	Err error
}

// completed returns the options with their defaults.
func (o *Options) completed() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Title == "" {
		c.Title = "Locks"
	}
	if c.Limit <= 0 {
		c.Limit = DefaultLimit
	}
	if c.CrossOrigin == nil {
		c.CrossOrigin = http.NewCrossOriginProtection()
	}
	return c
}
