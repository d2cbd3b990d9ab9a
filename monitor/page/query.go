package page

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
)

// pageSize is how many locks are on one page.
const pageSize = 100

// maxSearch is the longest search, in bytes.
const maxSearch = 300

// A query is what a viewer has chosen, as it stands in the address.
type query struct {
	Search string
	State  string // one of listing.States, or "" for all
	Order  listing.Order
	Page   int // from 1
	Lock   lockID
	Flat   bool // each row for itself
}

// A lockID names the lock whose own page is asked for: by its key, or where that is not known by its
// region and LOCK_KEY. It is zero if none is asked for.
type lockID struct{ Key, Region, LockKey string }

// queryOf reads a query. What makes no sense is ignored. A key that no lock can have is searched for.
func (p *page) queryOf(values url.Values) query {
	q := query{Search: strings.TrimSpace(values.Get("q")), State: values.Get("state"), Order: listing.Order(values.Get("sort"))}
	if len(q.Search) > maxSearch {
		q.Search = strings.ToValidUTF8(q.Search[:maxSearch], "")
	}
	if !slices.Contains(listing.States, q.State) {
		q.State = ""
	}
	if !q.Order.Valid() {
		q.Order = listing.Oldest
	}
	page, err := strconv.Atoi(values.Get("page"))
	if q.Page = max(page, 1); err != nil {
		q.Page = 1
	}
	q.Lock = lockID{values.Get("key"), values.Get("in"), values.Get("of")}
	if q.Lock.Key != "" {
		repository := p.registry.Repository()
		if q.Lock.LockKey, err = repository.LockKey(q.Lock.Key); err != nil {
			q.Search = q.Lock.Key
		}
		q.Lock.Region = repository.Region()
	}
	if q.Lock.LockKey == "" {
		q.Lock = lockID{}
	}
	return q
}

// values returns the parameters of an address, without those that are the default.
func (q query) values() url.Values {
	values := make(url.Values)
	set := func(name, value, unless string) {
		if value != unless {
			values.Set(name, value)
		}
	}
	set("q", q.Search, "")
	set("state", q.State, "")
	set("sort", string(q.Order), string(listing.Oldest))
	set("page", strconv.Itoa(q.Page), "1")
	if set("key", q.Lock.Key, ""); q.Lock.Key == "" {
		set("of", q.Lock.LockKey, "")
		set("in", q.Lock.Region, "")
	}
	return values
}

// address returns the relative address of name, with the query. "./" is the page.
func (q query) address(name string) string {
	if encoded := q.values().Encode(); encoded != "" {
		return name + "?" + encoded
	}
	return name
}

// sortedBy returns the query with another order.
func (q query) sortedBy(column string) query {
	q.Order, q.Page = q.Order.By(column), 1
	return q
}

// onPage returns the query for another page.
func (q query) onPage(page int) query {
	q.Page = page
	return q
}

// onLock returns the query for the page of a lock, from which the viewer returns to this one.
func (q query) onLock(lock lockID) query {
	q.Lock = lock
	return q
}

// selected returns the locks that fit the query, sorted: the rows of one for themselves.
func (q query) selected(locks []listing.Lock) []listing.Group {
	var groups []listing.Group
	if q.Flat || q.Lock != (lockID{}) {
		for _, l := range locks {
			groups = append(groups, alone(l))
		}
	} else {
		groups = listing.Grouped(locks)
	}
	groups = slices.DeleteFunc(groups, func(g listing.Group) bool { return !q.fits(g) })
	listing.SortGroups(groups, q.Order)
	return groups
}

func (q query) fits(g listing.Group) bool {
	if q.Lock != (lockID{}) {
		return g.Region == q.Lock.Region && cmp.Or(g.Seat.Of, g.LockKey) == q.Lock.LockKey
	}
	return q.fitsState(g.Lock) && g.Matches(q.Search)
}

// fitsState reports whether a lock has the state that the query names. The page of a lock shows it in any state.
func (q query) fitsState(l listing.Lock) bool {
	return q.State == "" || q.State == l.State() || q.Lock != (lockID{})
}

// alone returns a row as a group of its own.
func alone(l listing.Lock) listing.Group { return listing.Group{Lock: l, Rows: []listing.Lock{l}} }

// unlocking returns the address that asks whether a row is to be removed, and by POST removes it. It carries
// the query, to which the viewer returns.
func (q query) unlocking(r sqllock.Row) string {
	values := q.values()
	values.Set("region", r.Region)
	values.Set("lock_key", r.LockKey)
	values.Set("holder", r.Holder)
	return "unlock?" + values.Encode()
}

// maxForm is the longest form that is read, in bytes. The columns are shorter.
const maxForm = 16 << 10

// isAddressable reports whether an address can name a row. The columns that sqllock makes hold no
// others; SQLite keeps any bytes, and any number of them.
func isAddressable(r sqllock.Row) bool {
	for _, text := range []string{r.Region, r.LockKey, r.Holder} {
		if !utf8.ValidString(text) || len(text) > maxForm {
			return false
		}
	}
	return r.LockKey != ""
}
