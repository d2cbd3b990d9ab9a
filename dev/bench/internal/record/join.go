package record

import (
	"errors"
	"fmt"
	"time"
)

// ErrDiffer is returned for runs that did not measure the same.
var ErrDiffer = errors.New("the runs did not measure the same")

// Join returns a file that has the rounds of all runs, so that a median is one over all of them.
// It describes the machine as the first run does.
func Join(runs []*File) (*File, error) {
	if len(runs) == 1 {
		return runs[0], nil
	}
	joined := *runs[0]
	joined.Runs, joined.Series, joined.Took = runs, nil, ""
	var took time.Duration
	for _, run := range runs {
		lasted, err := time.ParseDuration(run.Took)
		if err != nil {
			return nil, err
		}
		took += lasted
	}
	joined.Took = fmt.Sprintf("%v in %d runs", took, len(runs))
	for _, s := range runs[0].Series {
		s.Rounds = nil
		for _, run := range runs {
			part, found := run.Find(s.Load, s.Contender)
			if !found || len(run.Series) != len(runs[0].Series) {
				return nil, fmt.Errorf("%w: %s, %s", ErrDiffer, s.Load, s.Contender)
			}
			s.Rounds = append(s.Rounds, part.Rounds...)
		}
		joined.Series = append(joined.Series, s)
	}
	return &joined, nil
}
