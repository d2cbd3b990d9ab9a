package record

import (
	"fmt"
	"slices"
	"time"
)

// Add makes f, a run of some loads, a part of an earlier run that has others: f then has the series of
// both, its own where both have one, and describes when and where the earlier one began.
func (f *File) Add(earlier *File) error {
	took, err := sum(earlier.Took, f.Took)
	if err != nil {
		return err
	}
	measured := f.Series
	all := slices.Clone(earlier.Series)
	for _, s := range measured {
		all = slices.DeleteFunc(all, func(old Series) bool { return old.Load == s.Load && old.Contender == s.Contender })
	}
	contenders := slices.Clone(earlier.Contenders)
	for _, c := range f.Contenders {
		if i := slices.IndexFunc(contenders, func(old Contender) bool { return old.Name == c.Name }); i >= 0 {
			contenders[i] = c
		} else {
			contenders = append(contenders, c)
		}
	}
	part := *f
	*f = *earlier
	f.Took, f.Contenders, f.Series = took, contenders, append(all, measured...)
	f.Command += fmt.Sprintf("; %s: %s", part.Started.Format(time.DateTime), part.Command)
	return nil
}

// sum adds durations as files have them.
func sum(all ...string) (string, error) {
	var total time.Duration
	for _, one := range all {
		d, err := time.ParseDuration(one)
		if err != nil {
			return "", fmt.Errorf("how long a run took: %w", err)
		}
		total += d
	}
	return total.String(), nil
}
