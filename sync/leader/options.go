package leader

import "time"

// Defaults of [Options].
const (
	DefaultObserveEvery = time.Second
	DefaultGrace        = 5 * time.Second
)

// Options are the settings of an [Elector]. A zero field means its default.
//
// The hooks may be called at the same time as each other, each of them by one goroutine at a time. They must return
// soon: OnError delays the next campaign, and Run waits for all of them before it returns. They may call
// [Elector.Resign], and must not wait for [Elector.Run].
type Options struct {
	// SitOut is how long at most the elector leaves the role to others after a term that it ended itself, by
	// [Elector.Resign] or because the function returned nil. It campaigns again as soon as another elector leads,
	// which it notices within the registry's IdleBetweenTries. It may miss a term that is shorter than an eighth of
	// that, or than 10 ms. Default: the time-to-live of the lease.
	//
	// After a term of less than 100 ms that the function ended, the elector pauses before that: for 100 ms, and for
	// twice as long after each further such term, up to the time-to-live.
	SitOut time.Duration

	// ObserveEvery is the time between two reads of the role's row while this elector does not lead. They are for
	// [Options.OnChange] and [NotLeaderError]; how soon the elector leads does not depend on them. Default 1 s.
	ObserveEvery time.Duration

	// OnChange, if set, is called when the leader changes: with the new one, whose Me is set if it is this elector, or
	// with the zero Leader if there is none. This elector's own row may come first without Me, if it is read in the moment
	// before this elector knows that it leads. A term that is shorter than ObserveEvery may not be reported.
	OnChange func(Leader)

	// OnError, if set, is called with each error that does not end [Elector.Run]: an error of the database while the
	// elector is a candidate, a lease that was lost or could not be released, and what the function returned after
	// its context had ended, unless that is the context's own error. With
	// [sqllock.RegistryOptions].WaitThroughOutages a candidate bridges an outage without an error.
	OnError func(error)

	// OnStuck, if set, is called when the function has not returned within Grace after its lease has ended, and again
	// each time another Grace has passed, with the time since that end. Another elector may lead by then. Where
	// nothing else can stop the function, os.Exit(1) does.
	//
	// OnStuck is not called while the lease is renewed for a function that takes long to return after Resign or the
	// end of Run's context.
	OnStuck func(since time.Duration)

	// Grace is the time that OnStuck leaves the function. Default 5 s.
	Grace time.Duration
}

// complete checks the options and fills in the defaults. ttl is that of the lease.
func (o *Options) complete(ttl time.Duration) (Options, error) {
	var all Options
	if o != nil {
		all = *o
	}
	if all.SitOut == 0 {
		all.SitOut = ttl
	}
	if all.ObserveEvery == 0 {
		all.ObserveEvery = DefaultObserveEvery
	}
	if all.Grace == 0 {
		all.Grace = DefaultGrace
	}
	switch {
	case all.SitOut < 0:
		return all, invalid("SitOut %v is negative", all.SitOut)
	case all.ObserveEvery < 0:
		return all, invalid("ObserveEvery %v is negative", all.ObserveEvery)
	case all.Grace < 0:
		return all, invalid("Grace %v is negative", all.Grace)
	}
	return all, nil
}

// reportError calls OnError, unless err is nil.
func (o *Options) reportError(err error) {
	if err != nil && o.OnError != nil {
		o.OnError(err)
	}
}
