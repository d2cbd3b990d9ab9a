package sqllock

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/names"
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

// parseProcess returns the process that has written a text to the table of names, or the zero Process for "".
func parseProcess(text string) (p Process) {
	_ = json.Unmarshal([]byte(text), &p) // a version that writes something else is not known
	return p
}

// process returns what this process writes to the table of names, or "" if it writes nothing there.
func (o *RegistryOptions) process() string {
	if o.DisableNames {
		return ""
	}
	application, version := program()
	if o.Application != "" {
		application, version = o.Application, ""
	}
	if o.Version != "" {
		version = o.Version
	}
	host, _ := os.Hostname() // without one there is the rest
	return nameOfProcess(Process{Host: host, PID: os.Getpid(), Application: application, Version: version})
}

// nameOfProcess returns the JSON of a process, in which the application and its version, and after them the
// host, are cut until the column can keep it.
func nameOfProcess(p Process) string {
	const longest = 255
	for most := 2 * longest; ; most-- {
		host, own := min(most, longest), max(most-longest, 0)
		text, _ := json.Marshal(Process{Host: shortened(p.Host, host), PID: p.PID, Application: shortened(p.Application, own), Version: shortened(p.Version, own)})
		if names.Fits(string(text)) {
			return string(text)
		}
	}
}

// shortened returns the first most bytes of a text, without a character that is cut in two.
func shortened(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// program returns the name of the program, and the version of its main module if the build has one.
var program = sync.OnceValues(func() (name, version string) {
	name = strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	return name, version
})

// knownProcess returns the process of a holder, as far as it is known without the database. own is what this one calls
// itself.
func (r *Repository) knownProcess(holder, own string) Process {
	if r.table.IsOwn(holder) {
		return parseProcess(own)
	}
	return parseProcess(r.table.Names.KnownProcess(holder))
}

// peeked returns rows that were read for keys, with the processes that hold them. A key in UUID form may be what stands in
// LOCK_KEY, of a key that the table of names has.
func (r *Repository) peeked(ctx context.Context, read map[string]locktable.Row) map[string]Row {
	var uuids []locktable.Row
	for key, row := range read {
		if uuidForm.MatchString(key) {
			uuids = append(uuids, row)
		}
	}
	named := r.table.Names.Of(ctx, uuids)
	r.table.Names.AskFor(ctx, slices.Collect(maps.Values(read)))
	rows := make(map[string]Row, len(read))
	for key, from := range read {
		row := rowOf(from)
		row.Process = parseProcess(r.table.Names.KnownProcess(from.Holder))
		if row.Key = key; uuidForm.MatchString(key) {
			row.Key = named.Key(from)
		}
		rows[key] = row
	}
	return rows
}

// named returns what a list of the table has read, with its names, or its error.
func (r *Repository) named(ctx context.Context, read []locktable.Row, err error) ([]Row, error) {
	if err != nil {
		return nil, failure.Of(err, "")
	}
	named, rows := r.table.Names.Of(ctx, read), make([]Row, len(read))
	for i, row := range read {
		rows[i] = rowOf(row)
		rows[i].Key, rows[i].Process = named.Key(row), parseProcess(named.Process(row))
	}
	return rows, nil
}

// rowOf returns a row that the table has read, without names.
func rowOf(read locktable.Row) Row {
	return Row{Region: read.Region, LockKey: read.LockKey, Holder: read.Holder, Age: read.Age, Left: read.Left}
}

// read returns the row as the table reads it.
func (row Row) read() locktable.Row {
	return locktable.Row{Region: row.Region, LockKey: row.LockKey, Holder: row.Holder, Age: row.Age, Left: row.Left}
}
