package observe

import (
	"context"
	"time"
)

// An Observer receives the events of locks: for logs, metrics and traces. Any number of
// them may be set in [sqllock.RepositoryOptions], for the repository and all registries
// over it, or in [sqllock.RegistryOptions], for one registry. Each function may be nil.
// Later versions may add functions, and fields to the events.
//
// The functions are called by the goroutines that do the work, several at a time, and must return
// soon: Acquire and its function delay the caller of Lock; LeaseEnd that of Unlock, or the next
// renewal if one finds the row gone; Renewal the next renewal; Election the start and the end of a
// term; Waiting the next one; JobRun the scheduler. They may call any method of the registry, but LeaseEnd must not
// unlock its own lease, whose Unlock may wait for it. Events of calls that Close has ended may come after Close has returned.
//
// No function is called with a mutex held, so a panic leaves no lock taken. It continues in the
// goroutine that made the call, after the other observers were called: each Acquire that has
// returned receives its answer, and each lease its end. In Acquire and its function that is the
// caller's goroutine; a lock that was acquired is released first. A lease that expires, a renewal, a wait,
// an election and a failed wake-up have goroutines of sqllock's own, in which a panic ends the process.
type Observer struct {
	// Acquire is called when a caller asks for a lock. The context that it returns, which
	// must be made from ctx, is used for the statements of the acquisition and for the
	// context of the lease. The function that it returns, if it is not nil, is called once,
	// just before the caller gets its answer. A nil context leaves ctx as it was.
	//
	// A statement that acquires several locks for several callers belongs to none of them: it
	// does not get this context, and AcquireEnd.Batched is true.
	//
	// Bad input, and the errors of [sqllock.Registry.Obtain], are not reported.
	Acquire func(ctx context.Context, e AcquireStart) (context.Context, func(AcquireEnd))

	// LeaseEnd is called once for each acquisition, when the last lease of it is over. ctx
	// has the values of what Acquire returned, and may have ended. LeaseEnd comes after the
	// function that Acquire returned. The next caller of this process may get its answer
	// first.
	//
	// Close of the registry calls it for each lease, one after the other, and waits for it: with
	// the reason [EndClosed] it must not call Close itself.
	LeaseEnd func(ctx context.Context, e LeaseEnd)

	// Renewal is called after each automatic try to renew the leases of one time-to-live. The
	// next try waits until it returns. It may call Close, which therefore does not wait for it.
	Renewal func(ctx context.Context, e Renewal)

	// Election is called when the state of an elector of package leader changes.
	Election func(ctx context.Context, e Election)

	// Fallback is called when acquisitions begin to take more round trips than they should (see
	// [sqllock.RepositoryOptions.Acquirers]), when a caller of a fair lock waits out of turn (see
	// [sqllock.RegistryOptions.Fair]), and when Wake of mysqllock.Open has no effect, the last two once a minute at
	// most. It is about the repository: those of observers that are set in RegistryOptions are not called.
	Fallback func(ctx context.Context, e Fallback)

	// Refusal is called when package job or gocronlock refuses to run a job, with an
	// [sqllock.ErrInvalid]: the scheduler that has called them may drop the error.
	Refusal func(ctx context.Context, e Refusal)

	// Waiting is called when a caller has waited for a lock for [sqllock.RegistryOptions.ReportWaitAfter],
	// and again when it has waited for twice as long, four times as long and so on, at least each hour. Of
	// the callers of a registry that wait for one key the event is about the one that has waited the longest,
	// so a thousand of them make no more events than one. ctx is that caller's, and may have ended.
	//
	// If no observer has this function, the registry logs the event to slog.Default(), as [SlogObserver]
	// does. An elector of package leader that is a candidate waits without an event.
	Waiting func(ctx context.Context, e Wait)

	// JobRun is called after each call of a job of package job, also if that was skipped, and when gocronlock
	// has run a job or skips it. A call that is refused makes a Refusal instead.
	JobRun func(ctx context.Context, e JobRun)
}

// A Wait says that a caller still waits for a lock.
type Wait struct {
	// Key is the key as a caller wrote it: of a joint lock the one that is held.
	Key string
	// Holder is the CLIENT_ID of the holder that was seen last, or "" if none was seen.
	Holder string
	// Process is the process of the holder, as [sqllock.Process] is written, or "" if it is not known.
	Process string
	// Waited is how long the caller has waited.
	Waited time.Duration
	// Err is the error of the database if callers wait through an outage; or it says that the lease of the row is
	// over, and which session has it locked, if the server tells: see [sqllock.Repository.Pin]. Else it is nil.
	Err error
}

// A JobRun says what has become of one call of a job.
type JobRun struct {
	// Job is the name of the job: the key of its lock.
	Job string
	// Outcome sums up Err.
	Outcome JobOutcome
	// Err is what the call returns, or nil. That of a run that panicked says so.
	Err error
	// Began is when the run began, and Took how long it took. Both are zero if it has not begun.
	Began time.Time
	Took  time.Duration
	// Next is when a run can begin at the earliest, as far as is known: at the end of the minimum hold,
	// or of the lease of another instance unless it is renewed. It is zero if one can begin at once.
	Next time.Time
}

// A JobOutcome is a short name for what has become of a call of a job.
type JobOutcome string

// The outcomes of a call of a job.
const (
	JobRan     JobOutcome = "ran"     // it has returned no error
	JobFailed  JobOutcome = "failed"  // it has returned an error or panicked, or its lease was lost
	JobEnded   JobOutcome = "ended"   // it has run; gocron does not tell its locker whether it has failed
	JobSkipped JobOutcome = "skipped" // another instance runs it, or has run it in this period
	JobError   JobOutcome = "error"   // it has not run: the database has failed, or the context or the registry had ended
)

// A Refusal says which job cannot run, each time that it should.
type Refusal struct {
	// Key is the key of its lock.
	Key string
	// Err is the [sqllock.ErrInvalid]. It says why.
	Err error
}

// An AcquireStart says what a caller asks for.
type AcquireStart struct {
	// Key is the key as the caller wrote it. That of a joint lock names several of its keys.
	Key string
	// TTL is the time-to-live of the lease.
	TTL time.Duration
	// Wait is how long the caller waits at most: 0 for a single try, negative for as long as
	// its context lasts.
	Wait time.Duration
	// AutoRenew reports whether the lease is to be renewed until it is unlocked.
	AutoRenew bool
	// StandsBy reports whether the caller is a candidate of package leader, which may wait for ever.
	StandsBy bool
}

// An AcquireEnd is the answer to a caller that asked for a lock.
type AcquireEnd struct {
	AcquireStart

	// Outcome sums up Err.
	Outcome Outcome
	// Err is what the caller gets, or nil if it has the lock.
	Err error
	// Holder and Token are those of the lease: see [sqllock.Lease.Holder] and [sqllock.Lease.Token].
	Holder string
	Token  int64
	// Took is the time since the caller asked. Queued is how much of it the caller waited
	// behind callers of the same registry.
	Took, Queued time.Duration
	// Attempts is how often the caller tried to acquire the row, and Polls how often it read
	// the row in between, or before.
	Attempts, Polls int
	// HeldBy is the CLIENT_ID of the last other holder that the caller has found, or "".
	HeldBy string
	// Reentered reports whether the lock was entered again with the context of a lease. It is
	// no acquisition then: no LeaseEnd follows.
	Reentered bool
	// HandedOn reports whether another caller of the registry handed its row on: see
	// [sqllock.RegistryOptions.HandOff].
	HandedOn bool
	// Batched reports whether the statement that gave the answer was also for others.
	Batched bool
}

// An Outcome is a short name for the result of a call that asked for a lock.
type Outcome string

// The outcomes of an acquisition.
const (
	OutcomeAcquired  Outcome = "acquired"
	OutcomeHeld      Outcome = "held"      // a single try has found it held
	OutcomeTimeout   Outcome = "timeout"   // the limit, or the deadline of the context, came first
	OutcomeCancelled Outcome = "cancelled" // the caller's context, or Close, ended the wait
	OutcomeLost      Outcome = "lost"      // the lease that was to be entered again is lost
	OutcomeError     Outcome = "error"     // any other error, mostly of the database
)

// A LeaseEnd says how an acquisition has ended.
type LeaseEnd struct {
	// Key, Holder and Token are those of the lease: see [sqllock.Lease].
	Key    string
	Holder string
	Token  int64
	// Reason says why.
	Reason EndReason
	// Err is what [sqllock.Lease.Unlock] returns: an [sqllock.ErrLockLost] if the lease is lost, the error of
	// the release if that failed, [sqllock.ErrClosed] if the registry was closed, else nil.
	Err error
	// Held is how long the lock was held, and Left how much longer the lease would have lasted.
	Held, Left time.Duration
	// AutoRenew is that of the AcquireStart.
	AutoRenew bool
}

// An EndReason says why a lease has ended.
type EndReason string

// The reasons for the end of a lease.
const (
	EndUnlocked EndReason = "unlocked"
	EndHandedOn EndReason = "handed_on" // Unlock gave the row to another caller of the registry
	EndExpired  EndReason = "expired"   // lost: it was not renewed in time
	EndTaken    EndReason = "taken"     // lost: its row was deleted, or taken over
	EndClosed   EndReason = "closed"    // Close of the registry
)

// Lost reports whether the lease ended before its holder unlocked it, other than by Close.
func (r EndReason) Lost() bool { return r == EndExpired || r == EndTaken }

// A Renewal is an automatic try to renew all leases of one time-to-live.
type Renewal struct {
	// TTL is their time-to-live.
	TTL time.Duration
	// Leases is how many were to be renewed, Lost how many of these were found lost, and Pinned
	// how many rows another transaction had locked: they are renewed one by one.
	Leases, Lost, Pinned int
	// Took is how long it took.
	Took time.Duration
	// Left is how much time the shortest of the leases had left when the database answered,
	// before this renewal extended it: 0 if it was over.
	Left time.Duration
	// Err is the error, or nil. The registry tries again; a lease is lost only when its context
	// ends. An [sqllock.ErrPinned] says that some rows are still locked by others.
	Err error
}

// An Election is a change of the state of an elector: see package leader.
type Election struct {
	// Role is the key of the election.
	Role string
	// State is the new state. A candidate becomes a leader, a leader a candidate, and a
	// candidate retires when Run returns.
	State ElectorState
	// Holder and Token are those of the lease of the term that has begun or ended.
	Holder string
	Token  int64
	// Led is how long the term lasted, and Cause why it ended, or nil if the function has
	// returned. They are set when a leader becomes a candidate.
	Led   time.Duration
	Cause error
}

// An ElectorState is the state of an elector.
type ElectorState string

// The states of an elector.
const (
	ElectorCandidate ElectorState = "candidate" // it campaigns, or leaves the role to others for a while
	ElectorLeader    ElectorState = "leader"
	ElectorRetired   ElectorState = "retired" // Run has returned
)

// A Fallback says why acquisitions take more round trips than they should, why a caller of a fair
// lock waits out of turn, or why releases do not wake other processes.
type Fallback struct {
	Reason    error
	OutOfTurn bool // it is about a fair lock
	Unwoken   bool // it is about Wake of mysqllock.Open, whose processes poll meanwhile
}
