package names

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/clientid"
	"github.com/sqllock/sqllock/internal/stmt"
)

// A row does not contain its time-to-live, so readers cannot tell a lease that was renewed a moment ago from one that
// its process no longer renews. So the table of names has the times-to-live of a process's leases, as far as they lasted for long.

// maxTTLs is how many a process tells of: of one with more nothing is known.
const maxTTLs = 32

// ttlKnownAfter is how old a row is before anything is said of it: younger leases may not have been written yet.
const ttlKnownAfter = 3 * NamedAfter

// ttlRounding is by how much the times of a row may differ from a time-to-live.
const ttlRounding = 10 * time.Millisecond

// A leaseKind is a time-to-live in milliseconds, negative if leases of it are not renewed.
type leaseKind int64

func leaseKindOf(ttl time.Duration, renewed bool) leaseKind {
	if renewed {
		return leaseKind(ttl.Milliseconds())
	}
	return -leaseKind(ttl.Milliseconds())
}

func (k leaseKind) ttl() time.Duration { return time.Duration(max(k, -k)) * time.Millisecond }

// leases are the kinds of leases that this client has. The zero value has none.
type leases struct {
	mu       sync.Mutex
	kinds    map[leaseKind]bool
	written  bool          // whether all are
	extended time.Duration // the shortest time-to-live of those that were made to last for longer than it; 0 if none was
}

// NoteLease notes that this client has leases of a time-to-live, which are renewed or not. extended says that one was made
// to last for longer, once. [Table.Write] writes it.
func (t *Table) NoteLease(ttl time.Duration, renewed, extended bool) {
	l := &t.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	if extended && (l.extended == 0 || ttl < l.extended) {
		l.extended = ttl
		l.written = false
	}
	kind := leaseKindOf(ttl, renewed)
	if l.kinds[kind] || len(l.kinds) > maxTTLs {
		return
	}
	if l.kinds == nil {
		l.kinds = make(map[leaseKind]bool)
	}
	l.kinds[kind] = true
	l.written = false
}

// HasUnwrittenLeases reports whether [Table.Write] has something to write of leases.
func (t *Table) HasUnwrittenLeases() bool { return t.leases.hasUnwritten() }

func (l *leases) hasUnwritten() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.kinds) > 0 && !l.written
}

// take returns the text to be written. What is noted from now on is written the next time.
func (l *leases) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	kinds := []leaseKind{}
	if len(l.kinds) <= maxTTLs {
		for kind := range l.kinds {
			if l.extended != 0 && kind.ttl() > l.extended { // a row with its times may be one that was extended
				kind = leaseKindOf(kind.ttl(), false)
			}
			kinds = append(kinds, kind)
		}
		slices.Sort(kinds)
		kinds = slices.Compact(kinds)
	}
	text, _ := json.Marshal(kinds) // they are numbers
	l.written = true
	return string(text)
}

// putBack notes that what was taken was not written.
func (l *leases) putBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written = false
}

// TTLs reads to which time-to-live the holders of rows renew their leases, by one statement, as far as that is known: 0
// if it is not, because other leases of the process would have the same times, or the lease is not renewed.
func (t *Table) TTLs(ctx context.Context, rows []stmt.Row) []time.Duration {
	ids := make(map[string]bool)
	for _, row := range rows {
		if client := clientid.Of(row.Holder); client != "" && !row.Expired() {
			ids[ttlID+client] = true
		}
	}
	names, ttls := t.named(ctx, timeout, ids), make([]time.Duration, len(rows))
	for i, row := range rows {
		var kinds []leaseKind
		_ = json.Unmarshal([]byte(names.texts[nameID{row.Region, ttlID + clientid.Of(row.Holder)}]), &kinds) // a version that writes something else is not known
		ttls[i] = ttlOf(row, kinds)
	}
	return ttls
}

// ttlOf returns the time-to-live of a row if only leases of one kind can have its times, and are renewed. Since a renewal never
// shortens a lease, it has at most its time-to-live left, and at least what is left of it since it was acquired.
func ttlOf(row stmt.Row, kinds []leaseKind) (ttl time.Duration) {
	if row.Expired() || row.Age < ttlKnownAfter {
		return 0
	}
	for _, kind := range kinds {
		if t := kind.ttl(); t < row.Left-ttlRounding || t > row.Age+row.Left+ttlRounding {
			continue
		}
		if ttl != 0 || kind < 0 {
			return 0
		}
		ttl = kind.ttl()
	}
	return ttl
}
