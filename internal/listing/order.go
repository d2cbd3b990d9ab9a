package listing

import (
	"cmp"
	"slices"
	"strings"
)

// An Order is how locks are sorted: by the name of a column, after a minus in descending order.
type Order string

// Columns are what locks can be sorted by.
var Columns = []string{"key", "region", "holder", "age", "left"}

// Oldest is the order that shows first what has been held for the longest time.
const Oldest Order = "-age"

// Column returns the column without the minus.
func (o Order) Column() string { return strings.TrimPrefix(string(o), "-") }

// Descending reports whether the greatest comes first.
func (o Order) Descending() bool { return strings.HasPrefix(string(o), "-") }

// By returns the order that a viewer chooses who names a column: of ages the greatest first, and the opposite if it is
// the order already.
func (o Order) By(column string) Order {
	first, opposite := Order(column), Order("-"+column)
	if column == Oldest.Column() {
		first, opposite = opposite, first
	}
	if o == first {
		return opposite
	}
	return first
}

// Valid reports whether there is such a column.
func (o Order) Valid() bool { return slices.Contains(Columns, o.Column()) }

// Sort sorts locks. Those that are equal, and all if the order is not valid, are sorted by region
// and LOCK_KEY, so that rows do not change places without a reason. By times, locks that have expired come last.
func Sort(locks []Lock, by Order) { slices.SortFunc(locks, by.compare()) }

// SortGroups sorts groups in the same way.
func SortGroups(groups []Group, by Order) {
	compare := by.compare()
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Or(compare(a.Lock, b.Lock), strings.Compare(a.Kind, b.Kind)) })
}

func (o Order) compare() func(a, b Lock) int {
	compare := o.column()
	return func(a, b Lock) int {
		first := compare(a, b)
		if o.Descending() {
			first = -first
		}
		if o.byTime() && a.Expired() != b.Expired() {
			first = 1
			if b.Expired() {
				first = -1
			}
		}
		return cmp.Or(first, strings.Compare(a.Region, b.Region), strings.Compare(a.LockKey, b.LockKey))
	}
}

func (o Order) byTime() bool { return o.Column() == "age" || o.Column() == "left" }

func (o Order) column() func(a, b Lock) int {
	switch o.Column() {
	case "key":
		return func(a, b Lock) int { return strings.Compare(strings.ToLower(a.Name()), strings.ToLower(b.Name())) }
	case "region":
		return func(a, b Lock) int { return strings.Compare(a.Region, b.Region) }
	case "holder":
		return func(a, b Lock) int { return strings.Compare(a.HeldBy(), b.HeldBy()) }
	case "age":
		return func(a, b Lock) int { return cmp.Compare(a.HeldFor(), b.HeldFor()) }
	case "left":
		return func(a, b Lock) int { return cmp.Compare(a.Left, b.Left) }
	default:
		return func(Lock, Lock) int { return 0 }
	}
}
