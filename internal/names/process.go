package names

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/clientid"
	"github.com/sqllock/sqllock/internal/stmt"
)

const (
	// processTimeout limits a statement that reads the name of one process, because a caller waits for it.
	processTimeout = 250 * time.Millisecond
	// unnamedFor is how long a client without a name is not asked for again, at first; it doubles each time, up to
	// longestUnnamed, which is how long one with a name is not. maxProcesses is how many clients are remembered.
	unnamedFor, longestUnnamed = 3 * time.Second, 5 * time.Minute
	maxProcesses               = 1000
)

// Process returns what the process that holds a row calls itself, or "" if that is not known. It asks the database at
// most once in five minutes for each client, unless that has no name yet, and only if the row is old enough to have
// one.
func (t *Table) Process(ctx context.Context, row stmt.Row) string {
	client := clientid.Of(row.Holder)
	if client == "" {
		return ""
	}
	name, ask := t.processes.of(client, mayBeNamed(row) && !t.reading.isAway())
	if !ask {
		return name
	}
	return t.processes.answered(client, t.processNow(ctx, client))
}

// AskFor asks for the processes of rows that [Table.Process] would ask for one by one, by one statement.
func (t *Table) AskFor(ctx context.Context, rows []stmt.Row) {
	if t.reading.isAway() {
		return
	}
	var clients []string
	for _, row := range rows {
		if client := clientid.Of(row.Holder); client != "" && mayBeNamed(row) {
			clients = append(clients, client)
		}
	}
	clients = t.processes.due(clients)
	ids := make(map[string]bool, len(clients))
	for _, client := range clients {
		ids[processID+client] = true
	}
	named := t.named(ctx, processTimeout, ids)
	for _, client := range clients {
		t.processes.answered(client, named.texts[nameID{t.region, processID + client}])
	}
}

// mayBeNamed reports whether the name of a row's process is to be expected. That of a row which stays for a minimum hold was
// written before the lock was unlocked, and over four columns the row's CREATED_DATE then lies ahead.
func mayBeNamed(row stmt.Row) bool {
	return row.Age >= NamedAfter || row.Age < 0 && clientid.IsKept(row.Holder)
}

// ProcessNow returns what the process that has a holder calls itself, or "". It asks each time, also for a row that is younger
// than [NamedAfter]: its process may have written its name for an earlier lock, or at once, because it ends before the lease does.
func (t *Table) ProcessNow(ctx context.Context, holder string) string {
	return t.processNow(ctx, clientid.Of(holder))
}

func (t *Table) processNow(ctx context.Context, client string) string {
	id := processID + client
	return t.named(ctx, processTimeout, map[string]bool{id: true}).texts[nameID{t.region, id}]
}

// KnownProcess returns what the process that has a holder calls itself, as far as that is known without the database.
func (t *Table) KnownProcess(holder string) string {
	name, _ := t.processes.of(clientid.Of(holder), false)
	return name
}

// processes remembers what clients' processes call themselves. The zero value is empty.
type processes struct {
	mu     sync.Mutex
	known  map[string]knownProcess // by client id
	asking bool                    // a caller asks for one of them
}

// A knownProcess is what a client's process calls itself, or "", with the time from which it may be asked for again,
// and how long that is after the last time.
type knownProcess struct {
	name  string
	again time.Time
	pause time.Duration
}

// of returns what is known of a client, and reports whether the caller, if it may, is to ask for it, and then to say
// what was answered: one at a time does, so that many waiters do not use up the pool.
func (p *processes) of(client string, mayAsk bool) (name string, ask bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.known[client]
	if !mayAsk || p.asking || time.Now().Before(known.again) {
		return known.name, false
	}
	p.asking = true
	return "", true
}

// due returns those of clients that the caller is to ask for, and then to say what was answered for each.
func (p *processes) due(clients []string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking {
		return nil
	}
	due := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(clients))), func(client string) bool {
		return time.Now().Before(p.known[client].again)
	})
	p.asking = len(due) > 0
	return due
}

// answered notes the name that was answered for a client, or "", and returns what is known of it now.
func (p *processes) answered(client, name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = false
	if p.known == nil || len(p.known) >= maxProcesses {
		p.known = make(map[string]knownProcess)
	}
	known := p.known[client]
	pause := min(max(2*known.pause, unnamedFor), longestUnnamed)
	if name = cmp.Or(name, known.name); name != "" {
		pause = longestUnnamed // another process may have this client id by then
	}
	p.known[client] = knownProcess{name, time.Now().Add(pause), pause}
	return name
}
