//go:build linux

// Package history is what workers did to a cluster, and when: one event a line, in JSON, in one
// file for each process.
//
// All times are of the machine's monotonic clock, in nanoseconds. It is one clock for all
// processes, and nothing sets it.
package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/sqllock/sqllock/internal/test/proc"
)

// The operations of events.
const (
	// Acquire is a call that locks. It has a Lease if it succeeded.
	Acquire = "acquire"
	// Alive says that the lease's context had not ended at To, and Unlock was not called.
	Alive = "alive"
	// Renew is a call of Lease.Renew.
	Renew = "renew"
	// Release is a call of Lease.Unlock.
	Release = "release"
	// Write is the COMMIT of a row with the ID.
	Write = "write"
	// Fault is what was done to the cluster, from the harm to the end of the repair.
	Fault = "fault"
	// Fatal is an error that a worker cannot explain.
	Fatal = "fatal"
)

// A Hold is a share of a key: so many Units of those that there are. Leases can be alive at the same
// time if there is room for their units, so one with all units of a key is alone. A plain lock has 1
// unit of 1, a reader one of many, a writer all of them.
type Hold struct {
	Key   string `json:"key"`
	Units int    `json:"units"`
	Of    int    `json:"of"`
}

// IsWhole reports whether the hold has all units.
func (h Hold) IsWhole() bool { return h.Units == h.Of }

// An Event is something that has begun at From and ended at To.
type Event struct {
	Op string `json:"op"`
	// Kind is the kind of lock, and Key the key of a row that was written.
	Kind  string `json:"kind,omitempty"`
	Key   string `json:"key,omitempty"`
	Lease string `json:"lease,omitempty"` // one acquisition, in all processes
	Token int64  `json:"token,omitempty"`
	// Holds is what an acquired lease holds.
	Holds   []Hold `json:"holds,omitempty"`
	ID      string `json:"id,omitempty"` // of a row; the name of a fault; the process whose acquisition failed
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Guarded bool   `json:"guarded,omitempty"`
	Err     string `json:"err,omitempty"`
}

// Now returns the time.
func Now() int64 { return proc.Now() }

// A Writer appends events to a file. It is safe for concurrent use. What was added is in the file
// when Add returns, also if the process is killed then.
type Writer struct{ file *os.File }

// NewWriter appends to the file dir/name.jsonl.
func NewWriter(dir, name string) (*Writer, error) {
	file, err := os.OpenFile(filepath.Join(dir, name+".jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Writer{file}, nil
}

// Add appends an event.
func (w *Writer) Add(e Event) {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = w.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("history: %v", err)) // nothing that follows could be judged
	}
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// Read returns the events of all files in dir, in the order of their ends. The last line of a
// process that was killed may be incomplete, and is dropped.
func Read(dir string) ([]Event, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var all []Event
	for _, path := range files {
		if all, err = readFile(path, all); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return int(min(max(a.To-b.To, -1), 1)) })
	return all, nil
}

func readFile(path string, all []Event) ([]Event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	for lines := json.NewDecoder(file); ; {
		var e Event
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, e)
	}
}
