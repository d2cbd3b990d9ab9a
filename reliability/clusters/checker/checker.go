//go:build linux

// Package checker judges a history of locks against the promises of sqllock:
//
//   - never two holders: no two leases of a key were alive at one instant;
//   - the tokens of a key rise from holder to holder;
//   - no guarded write was committed after a guarded write of a later holder;
//   - no guarded write that was acknowledged is missing;
//   - the lock of each key is linearizable: see linear.go.
//
// A violation is certain. An instant in which two leases were alive may stay unseen if it was
// shorter than the pause between two looks at a lease, some milliseconds.
package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock/reliability/clusters/history"
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
	// Overlaps, and the others, have a line for each violation.
	Overlaps, Tokens, Stale, Missing, Nonlinear, Fatal []string
}

// Violations returns all violations.
func (r *Report) Violations() []string {
	return slices.Concat(r.Overlaps, r.Tokens, r.Stale, r.Missing, r.Nonlinear, r.Fatal)
}

// Check judges events and the rows that are left.
func Check(events []history.Event, rows []Row) *Report {
	r := new(Report)
	leases := leasesOf(events)
	r.Acquisitions = len(leases)
	for _, e := range events {
		if e.Op == history.Fatal {
			r.Fatal = append(r.Fatal, e.Err)
		}
	}
	byKey := make(map[string][]*lease)
	for _, l := range leases {
		byKey[l.key] = append(byKey[l.key], l)
	}
	for _, key := range sortedKeys(byKey) {
		r.overlaps(byKey[key])
		r.tokens(byKey[key])
	}
	r.writes(events, rows)
	r.linear(events, leases)
	return r
}

// A lease is a hold, from the answer to its acquisition to the last instant at which it was
// certainly alive.
type lease struct {
	id, key    string
	token      int64
	asked      int64 // when the acquisition was sent
	from, last int64
}

func (l *lease) String() string {
	return fmt.Sprintf("lease %s of %s with token %d, alive from %v to %v", l.id, l.key, l.token, time.Duration(l.from), time.Duration(l.last))
}

func leasesOf(events []history.Event) []*lease {
	var all []*lease
	byID := make(map[string]*lease)
	for _, e := range events {
		switch {
		case e.Op == history.Acquire && e.Lease != "":
			// Until the first look it is not known whether the lease was alive.
			l := &lease{id: e.Lease, key: e.Key, token: e.Token, asked: e.From, from: e.To, last: -1}
			byID[e.Lease] = l
			all = append(all, l)
		case e.Op == history.Alive && byID[e.Lease] != nil:
			l := byID[e.Lease]
			l.last = max(l.last, e.To)
		}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// overlaps finds leases of one key that were alive at one instant.
func (r *Report) overlaps(leases []*lease) {
	var alive []*lease
	for _, l := range leases {
		if l.last >= l.from {
			alive = append(alive, l)
		}
	}
	slices.SortFunc(alive, func(a, b *lease) int { return int(min(max(a.from-b.from, -1), 1)) })
	var longest *lease
	for _, l := range alive {
		if longest != nil && l.from < longest.last {
			r.Overlaps = append(r.Overlaps, fmt.Sprintf("two holders: %v; %v", longest, l))
		}
		if longest == nil || l.last > longest.last {
			longest = l
		}
	}
}

// tokens finds a lease whose token is not higher than that of a lease that was acquired before it
// was asked for.
func (r *Report) tokens(leases []*lease) {
	byEnd := slices.SortedFunc(slices.Values(leases), func(a, b *lease) int { return int(min(max(a.from-b.from, -1), 1)) })
	byStart := slices.SortedFunc(slices.Values(leases), func(a, b *lease) int { return int(min(max(a.asked-b.asked, -1), 1)) })
	var highest *lease
	seen := make(map[int64]*lease)
	for _, l := range byStart {
		for len(byEnd) > 0 && byEnd[0].from < l.asked {
			if highest == nil || byEnd[0].token > highest.token {
				highest = byEnd[0]
			}
			byEnd = byEnd[1:]
		}
		switch {
		case seen[l.token] != nil:
			r.Tokens = append(r.Tokens, fmt.Sprintf("one token twice: %v; %v", seen[l.token], l))
		case highest != nil && l.token < highest.token:
			r.Tokens = append(r.Tokens, fmt.Sprintf("a token that does not rise: %v; %v", highest, l))
		}
		seen[l.token] = l
	}
}
