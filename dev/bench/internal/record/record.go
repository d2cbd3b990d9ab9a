// Package record is the format of the raw data: one JSON file for each run.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// A File has all measurements of a run, and describes the machine.
type File struct {
	Started  time.Time `json:"started"`
	Took     string    `json:"took"`
	Command  string    `json:"command"`
	Settings Settings  `json:"settings"`
	Machine  Machine   `json:"machine"`
	// Versions are those of the servers and of Go; Contenders have their own.
	Versions   map[string]string `json:"versions"`
	Contenders []Contender       `json:"contenders"`
	Series     []Series          `json:"series"`

	// Runs are those that were joined, or nil.
	Runs []*File `json:"-"`
}

// Settings are the durations and the number of rounds.
type Settings struct {
	Rounds      int    `json:"rounds"`
	Measure     string `json:"measure"`
	Warm        string `json:"warm"`
	Connections int    `json:"connections"`
	TTL         string `json:"ttl"`
}

// A Machine describes the machine of a run.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	System string `json:"system"`
	Disk   string `json:"disk"`
}

// A Contender is what was measured.
type Contender struct {
	Name     string `json:"name"`
	Library  string `json:"library"`
	Version  string `json:"version"`
	Database string `json:"database"`
	Settings string `json:"settings"`
}

// A Series is one contender under one load, a value a round.
type Series struct {
	Load      string  `json:"load"`
	Contender string  `json:"contender"`
	Database  string  `json:"database"`
	Rounds    []Round `json:"rounds"`
}

// A Round is one measurement. The names of values end in their units.
type Round struct {
	Values map[string]float64 `json:"values,omitempty"`
	// Samples are single durations in microseconds, where there are few.
	Samples []float64 `json:"samples,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// Values returns the values of one name, of the rounds that have it.
func (s Series) Values(name string) []float64 {
	var values []float64
	for _, round := range s.Rounds {
		if value, ok := round.Values[name]; ok {
			values = append(values, value)
		}
	}
	return values
}

// Samples returns those of all rounds.
func (s Series) Samples() []float64 {
	var samples []float64
	for _, round := range s.Rounds {
		samples = append(samples, round.Samples...)
	}
	return samples
}

// Failure returns the error of the first failed round, or "".
func (s Series) Failure() string {
	for _, round := range s.Rounds {
		if round.Error != "" {
			return round.Error
		}
	}
	return ""
}

// Find returns the series of a contender under a load.
func (f *File) Find(load, contender string) (Series, bool) {
	for _, s := range f.Series {
		if s.Load == load && s.Contender == contender {
			return s, true
		}
	}
	return Series{}, false
}

// Under returns all series of a load on a database; "" is any.
func (f *File) Under(load, database string) []Series {
	var found []Series
	for _, s := range f.Series {
		if s.Load == load && (database == "" || s.Database == database) {
			found = append(found, s)
		}
	}
	return found
}

// Read reads a file.
func Read(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var f File
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &f, nil
}

// Write writes the file.
func (f *File) Write(path string) error {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // for everyone to read
}

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
