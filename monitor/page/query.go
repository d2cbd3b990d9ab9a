package page

import (
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
}

// queryOf reads a query. What makes no sense is ignored.
func queryOf(values url.Values) query {
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

// selected returns the locks that fit the query, sorted.
func (q query) selected(locks []listing.Lock) []listing.Lock {
	var chosen []listing.Lock
	for _, l := range locks {
		if (q.State == "" || q.State == l.State()) && l.Matches(q.Search) {
			chosen = append(chosen, l)
		}
	}
	listing.Sort(chosen, q.Order)
	return chosen
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
