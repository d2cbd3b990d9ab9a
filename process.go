package sqllock

import (
	"strconv"
	"strings"

	"github.com/sqllock/sqllock/internal/locktable"
)

// A Process is a process as it calls itself in the table of names: see
// [RegistryOptions.Application]. What is not known is "" or 0, and so is all of a process that
// has not been named.
type Process struct {
	// Host is the name of its machine, container or pod.
	Host string `json:"host,omitempty"`
	// PID is its process ID there.
	PID int `json:"pid,omitempty"`
	// Application and Version are those of its [RegistryOptions].
	Application string `json:"application,omitempty"`
	Version     string `json:"version,omitempty"`
}

// String returns the process as messages name it, "orders 1.4.2 on web-7, pid 4711", without what
// is not known, or "" for the zero value.
func (p Process) String() string {
	text := strings.TrimSpace(p.Application + " " + p.Version)
	if text != "" && p.Host != "" {
		text += " on "
	}
	text += p.Host
	if p.PID == 0 {
		return text
	}
	if text != "" {
		text += ", "
	}
	return text + "pid " + strconv.Itoa(p.PID)
}

// rowOf returns a row that the table has read, without names.
func rowOf(read locktable.Row) Row {
	return Row{Region: read.Region, LockKey: read.LockKey, Holder: read.Holder, Age: read.Age, Left: read.Left}
}

// read returns the row as the table reads it.
func (row Row) read() locktable.Row {
	return locktable.Row{Region: row.Region, LockKey: row.LockKey, Holder: row.Holder, Age: row.Age, Left: row.Left}
}
