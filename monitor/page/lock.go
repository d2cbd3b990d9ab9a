package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/printable"
)

// addLock adds what the page of one lock shows beside its rows.
func (p *page) addLock(v *view, kept record) {
	lock := v.Query.Lock
	v.Name = printable.Text(cmp.Or(lock.Key, lock.LockKey))
	for _, row := range v.Rows {
		v.Name = printable.Text(cmp.Or(lock.Key, row.Of, *cmp.Or(row.Key, &row.LockKey)))
	}
	if v.Recorder && lock.Region == p.registry.Repository().Region() {
		v.Seen = p.seen(lock.LockKey, kept.keys)
		for _, row := range v.Rows {
			if row.Here {
				v.Seen.LongestHold = max(v.Seen.LongestHold, row.Age)
			}
		}
	}
}

// seen returns what was seen of the keys that are rows of a lock.
func (p *page) seen(lockKey string, keys map[string]seen) *seen {
	all := new(seen)
	isOf := func(key string) bool {
		own, err := p.registry.Repository().LockKey(key)
		row := listing.Named([]sqllock.Row{{LockKey: own}}, map[string]string{own: key})[0]
		return err == nil && cmp.Or(row.Seat.Of, own) == lockKey
	}
	for key, one := range keys {
		if !isOf(key) && !slices.ContainsFunc(strings.Split(key, ", "), isOf) { // as observers receive those of a joint lock
			continue
		}
		all.Acquired += one.Acquired
		all.LongestWait, all.LongestHold = max(all.LongestWait, one.LongestWait), max(all.LongestHold, one.LongestHold)
		all.Events = newestFirst(all.Events, one.Events)
	}
	all.Events = listed(all.Events)
	p.reader.nameIn(all.Events)
	return all
}

// countOf says how many permits or readers the rows of a lock are, or returns "".
func countOf(rows []listing.Group) string {
	var locks []listing.Lock
	for _, row := range rows {
		locks = append(locks, row.Lock)
	}
	for _, g := range listing.Grouped(locks) {
		if count := g.Count(); count != "" {
			return count
		}
	}
	return ""
}

// lockOf returns how the address of a lock's own page names it.
func (p *page) lockOf(l listing.Lock) lockID {
	lock := lockID{"", l.Region, cmp.Or(l.Seat.Of, l.LockKey)}
	key := cmp.Or(l.Seat.Key, l.Key)
	if own, err := p.registry.Repository().LockKey(key); err == nil && own == lock.LockKey && l.Region == p.registry.Repository().Region() {
		lock.Key = key
	}
	return lock
}
