//go:build linux

// Package checker judges a history of locks against the promises of sqllock:
//
//   - the leases of a key that were alive at one instant have no more units than there are (see
//     [history.Hold]): never two holders of a plain lock, a reader beside a writer, two joint locks with
//     a key in common, too many permits, or two leaders;
//   - the tokens of those that hold all of a key rise from holder to holder;
//   - no guarded write was committed after a guarded write of a later holder;
//   - no guarded write that was acknowledged is missing;
//   - the lock of each key is linearizable: see linear.go.
//
// A violation is certain. An instant in which too many leases were alive may stay unseen if it was
// shorter than the pause between two looks at a lease, some milliseconds.
package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
)

// A Row is a row that was written under a lease, as it stands in the database at the end.
type Row struct {
	ID    string `db:"id"`
	Key   string `db:"name"`
	Token int64  `db:"token"`
	// Guarded says that the transaction was guarded.
	Guarded bool `db:"guarded"`
	// Earlier is how many guarded rows with lower tokens the transaction has seen after Guard.
	Earlier int `db:"earlier"`
	// Later is how many guarded rows with higher tokens it has seen.
	Later int `db:"later"`
}

// A Report is the judgement on a history.
type Report struct {
	Acquisitions, Guarded, Unguarded int
	// Kinds are the acquisitions of each kind of lock.
	Kinds map[string]int
	// Overlaps, and the others, have a line for each violation.
	Overlaps, Tokens, Stale, Missing, Nonlinear, Fatal []string
}

// Violations returns all violations.
func (r *Report) Violations() []string {
	return slices.Concat(r.Overlaps, r.Tokens, r.Stale, r.Missing, r.Nonlinear, r.Fatal)
}

// Check judges events and the rows that are left.
func Check(events []history.Event, rows []Row) *Report {
	r := &Report{Kinds: make(map[string]int)}
	leases := leasesOf(events)
	r.Acquisitions = len(leases)
	byKey := make(map[string][]hold)
	for _, l := range leases {
		r.Kinds[l.kind]++
		for _, h := range l.holds {
			byKey[h.Key] = append(byKey[h.Key], hold{l, h})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		r.overlaps(byKey[key])
		r.tokens(byKey[key])
		r.linear(key, byKey[key])
	}
	r.writes(events, rows)
	for _, e := range events {
		if e.Op == history.Fatal {
			r.Fatal = append(r.Fatal, e.Err)
		}
	}
	return r
}

// A lease lasts from the answer to its acquisition to the last instant at which it was certainly alive.
type lease struct {
	id, kind   string
	token      int64
	asked      int64 // when the acquisition was sent
	from, last int64
	holds      []history.Hold
	succeeded  []history.Event // the renewals, releases and writes
}

// A hold is what a lease holds of a key.
type hold struct {
	*lease
	history.Hold
}

func (h hold) String() string {
	return fmt.Sprintf("%s %s, %d of %d of %s, with token %d, alive from %v to %v",
		h.kind, h.id, h.Units, h.Of, h.Key, h.token, time.Duration(h.from), time.Duration(h.last))
}

func leasesOf(events []history.Event) []*lease {
	var all []*lease
	byID := make(map[string]*lease)
	for _, e := range events {
		l := byID[e.Lease]
		switch {
		case e.Op == history.Acquire && e.Lease != "":
			// Until the first look it is not known whether the lease was alive.
			l := &lease{id: e.Lease, kind: e.Kind, token: e.Token, asked: e.From, from: e.To, last: -1, holds: e.Holds}
			byID[e.Lease] = l
			all = append(all, l)
		case l == nil || e.Err != "":
		case e.Op == history.Alive:
			l.last = max(l.last, e.To)
		default:
			l.succeeded = append(l.succeeded, e)
		}
	}
	return all
}

// overlaps finds leases that were alive at one instant, and for which there was no room.
func (r *Report) overlaps(holds []hold) {
	var alive []hold // now
	for _, h := range byTime(holds, func(h hold) int64 { return h.from }) {
		if h.last < h.from {
			continue
		}
		alive = slices.DeleteFunc(alive, func(other hold) bool { return other.last <= h.from })
		alive = append(alive, h)
		units := 0
		for _, other := range alive {
			units += other.Units
		}
		if units > h.Of {
			r.Overlaps = append(r.Overlaps, fmt.Sprintf("held at once: %v", alive))
		}
	}
}

func byTime(holds []hold, at func(hold) int64) []hold {
	return slices.SortedFunc(slices.Values(holds), func(a, b hold) int { return cmp.Compare(at(a), at(b)) })
}

// tokens finds a lease whose token is not higher than that of a lease that was acquired before it
// was asked for. Only those that hold all of the key can be compared.
func (r *Report) tokens(holds []hold) {
	var whole []hold
	for _, h := range holds {
		if h.IsWhole() {
			whole = append(whole, h)
		}
	}
	byEnd := byTime(whole, func(h hold) int64 { return h.from })
	var highest hold
	seen := make(map[int64]hold)
	for _, h := range byTime(whole, func(h hold) int64 { return h.asked }) {
		for len(byEnd) > 0 && byEnd[0].from < h.asked {
			if highest.lease == nil || byEnd[0].token > highest.token {
				highest = byEnd[0]
			}
			byEnd = byEnd[1:]
		}
		switch {
		case seen[h.token].lease != nil:
			r.Tokens = append(r.Tokens, fmt.Sprintf("one token twice: %v; %v", seen[h.token], h))
		case highest.lease != nil && h.token < highest.token:
			r.Tokens = append(r.Tokens, fmt.Sprintf("a token that does not rise: %v; %v", highest, h))
		}
		seen[h.token] = h
	}
}
