package page

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// remembered is how many names a [lately] keeps.
const remembered = 200

// rememberedBytes is how many bytes the names of a [lately] have together at most, unless there is but one.
const rememberedBytes = 64_000

// A lately keeps a value for each of the names that were used last. The zero value is ready to use. It
// is not safe for concurrent use.
type lately[T any] struct {
	byName map[string]*used[T]
	bytes  int // of all names
}

type used[T any] struct {
	at    time.Time
	value T
}

// of returns the value of a name, to be changed, and forgets the names that were not used for the longest time
// if there are too many, or too long ones. Of a name that is too long for itself it keeps the beginning.
func (l *lately[T]) of(name string) *T {
	name = name[:min(len(name), rememberedBytes)]
	one := l.byName[name]
	if one == nil {
		if l.byName == nil {
			l.byName = make(map[string]*used[T])
		}
		for len(l.byName) == remembered || len(l.byName) > 0 && l.bytes+len(name) > rememberedBytes {
			l.forgetOldest()
		}
		one = new(used[T])
		l.byName[strings.Clone(name)] = one
		l.bytes += len(name)
	}
	one.at = time.Now()
	return &one.value
}

func (l *lately[T]) forgetOldest() {
	earlier := func(a, b string) int { return l.byName[a].at.Compare(l.byName[b].at) }
	oldest := slices.MinFunc(slices.Collect(maps.Keys(l.byName)), earlier)
	delete(l.byName, oldest)
	l.bytes -= len(oldest)
}

// values returns a copy.
func (l *lately[T]) values() map[string]T {
	values := make(map[string]T, len(l.byName))
	for name, one := range l.byName {
		values[name] = one.value
	}
	return values
}
