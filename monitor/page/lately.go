package page

import (
	"maps"
	"slices"
	"time"
)

// remembered is how many names a [lately] keeps.
const remembered = 200

// A lately keeps a value for each of the names that were used last. The zero value is ready to use. It
// is not safe for concurrent use.
type lately[T any] struct{ byName map[string]*used[T] }

type used[T any] struct {
	at    time.Time
	value T
}

// of returns the value of a name, to be changed, and forgets the name that was not used for the longest time
// if there are too many.
func (l *lately[T]) of(name string) *T {
	one := l.byName[name]
	if one == nil {
		if l.byName == nil {
			l.byName = make(map[string]*used[T])
		}
		if len(l.byName) == remembered {
			earlier := func(a, b string) int { return l.byName[a].at.Compare(l.byName[b].at) }
			delete(l.byName, slices.MinFunc(slices.Collect(maps.Keys(l.byName)), earlier))
		}
		one = new(used[T])
		l.byName[name] = one
	}
	one.at = time.Now()
	return &one.value
}

// values returns a copy.
func (l *lately[T]) values() map[string]T {
	values := make(map[string]T, len(l.byName))
	for name, one := range l.byName {
		values[name] = one.value
	}
	return values
}
