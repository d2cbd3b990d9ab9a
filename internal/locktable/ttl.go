package locktable

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// A row does not contain its time-to-live, so readers cannot tell a lease that was renewed a moment ago from one that
// its process no longer renews. So the table of names has the times-to-live of a process's leases, as far as they lasted for long.

// ttlID is what the ID of a client's times-to-live begins with.
const ttlID = "ttl:"

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

// NoteLease notes that this client has leases of a time-to-live, which are renewed or not. extended says that one was made
// to last for longer, once. [Table.WriteNames] writes it.
func (t *Table) NoteLease(ttl time.Duration, renewed, extended bool) {
	t.named.mu.Lock()
	defer t.named.mu.Unlock()
	if extended && (t.named.extended == 0 || ttl < t.named.extended) {
		t.named.extended = ttl
		t.named.leasesWritten = false
	}
	kind := leaseKindOf(ttl, renewed)
	if t.named.leases[kind] || len(t.named.leases) > maxTTLs {
		return
	}
	if t.named.leases == nil {
		t.named.leases = make(map[leaseKind]bool)
	}
	t.named.leases[kind] = true
	t.named.leasesWritten = false
}

// HasUnwrittenLeases reports whether WriteNames has something to write of leases.
func (t *Table) HasUnwrittenLeases() bool {
	t.named.mu.Lock()
	defer t.named.mu.Unlock()
	return len(t.named.leases) > 0 && !t.named.leasesWritten
}

// leasesRow returns the row of this client's times-to-live.
func (t *Table) leasesRow() Claim {
	t.named.mu.Lock()
	defer t.named.mu.Unlock()
	kinds := []leaseKind{}
	if len(t.named.leases) <= maxTTLs {
		for kind := range t.named.leases {
			if t.named.extended != 0 && kind.ttl() > t.named.extended { // a row with its times may be one that was extended
				kind = leaseKindOf(kind.ttl(), false)
			}
			kinds = append(kinds, kind)
		}
		slices.Sort(kinds)
		kinds = slices.Compact(kinds)
	}
	text, _ := json.Marshal(kinds) // they are numbers
	t.named.leasesWritten = true   // what is noted meanwhile is written the next time
	return Claim{LockKey: ttlID + t.holders.client, Holder: string(text)}
}

// TTLs reads to which time-to-live the holders of rows renew their leases, by one statement, as far as that is known: 0
// if it is not, because other leases of the process would have the same times, or the lease is not renewed.
func (t *Table) TTLs(ctx context.Context, rows []Row) []time.Duration {
	ids := make(map[string]bool)
	for _, row := range rows {
		if client := ClientOf(row.Holder); client != "" && !row.Expired() {
			ids[ttlID+client] = true
		}
	}
	names, ttls := t.readNames(ctx, namesTimeout, slices.Sorted(maps.Keys(ids))), make([]time.Duration, len(rows))
	for i, row := range rows {
		var kinds []leaseKind
		_ = json.Unmarshal([]byte(names.texts[nameID{row.Region, ttlID + ClientOf(row.Holder)}]), &kinds) // a version that writes something else is not known
		ttls[i] = ttlOf(row, kinds)
	}
	return ttls
}

// ttlOf returns the time-to-live of a row if only leases of one kind can have its times, and are renewed. Since a renewal never
// shortens a lease, it has at most its time-to-live left, and at least what is left of it since it was acquired.
func ttlOf(row Row, kinds []leaseKind) (ttl time.Duration) {
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
