package contender

import (
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// The contests, in which processes compete: so many processes × so many callers of each.
const (
	OneLock     = "one lock, 8 × 2"
	OneLockLong = "one lock, six times as long, 8 × 2"
	OtherPauses = "one lock, other pauses, 8 × 2"
	LoneCaller  = "one lock, 3 × 2 and 1 × 1"
	ManyCallers = "one lock, 24 × 1"
	JointLock   = "joint lock of six keys, 2 × 2, and its single keys, 6 × 2"
	Semaphore   = "semaphore of three permits, 8 × 2"
	ReadWrite   = "read-write lock, 8 × 2"
)

// A manner is a configuration of sqllock's Open that decides how callers wait for other processes.
type manner struct {
	name, settings string
	registry       sqllock.RegistryOptions
	wake           bool     // PostgreSQL alone has it
	contests       []string // on both databases
	onPostgres     []string // the others
}

// manners are the configurations that compete. To add one, add a line.
var manners = []manner{
	{
		name: "default", settings: "Open, by its defaults: five connections, IdleBetweenTries 100 ms",
		contests: []string{OneLock, LoneCaller, ManyCallers, JointLock, Semaphore, ReadWrite}, onPostgres: []string{OneLockLong},
	},
	{
		name: "fair", settings: "Open, with Fair", registry: sqllock.RegistryOptions{Fair: true},
		contests: []string{OneLock, LoneCaller, ManyCallers}, onPostgres: []string{OneLockLong, JointLock, Semaphore, ReadWrite},
	},
	{name: "fair, wake", settings: "Open, with Fair and Wake", registry: sqllock.RegistryOptions{Fair: true}, wake: true, onPostgres: []string{OneLock}},
	{name: "wake", settings: "Open, with Wake", wake: true, onPostgres: []string{OneLock, LoneCaller, ManyCallers}},
	{name: "25 ms", settings: "Open, with IdleBetweenTries 25 ms", registry: pause(25 * time.Millisecond), contests: []string{OtherPauses}},
	{name: "1 s", settings: "Open, with IdleBetweenTries 1 s", registry: pause(time.Second), contests: []string{OtherPauses}},
	{name: "3 s", settings: "Open, with IdleBetweenTries 3 s", registry: pause(3 * time.Second), contests: []string{OtherPauses}},
}

func pause(idle time.Duration) sqllock.RegistryOptions {
	return sqllock.RegistryOptions{IdleBetweenTries: idle}
}

// peers are the other libraries, and the contests of each.
var peers = []struct {
	all      []Contender
	contests []string
}{
	{advisory(), []string{OneLock, OneLockLong, LoneCaller, ManyCallers}},
	{getLock(), []string{OneLock, LoneCaller, ManyCallers}},
	{pglocks(), []string{OneLock, LoneCaller}},
	{springs(), []string{OneLock, LoneCaller}},
}

// Contestants returns the contenders of the contests, grouped by database. Peers have the names that they have in All.
func Contestants() []Contender {
	var all []Contender
	for _, d := range pools {
		for _, m := range manners {
			if c := m.contender(d); len(c.Loads) > 0 {
				all = append(all, c)
			}
		}
		all = append(all, mixed(d))
		for _, p := range peers {
			for _, c := range p.all {
				if c.Loads = p.contests; c.Database == d.kind {
					all = append(all, c)
				}
			}
		}
	}
	return append(all, etcds()...)
}

// Find returns the contender of that name.
func Find(name string) (Contender, bool) {
	all := slices.Concat(All(), Contestants())
	i := slices.IndexFunc(all, func(c Contender) bool { return c.Name == name })
	if i < 0 {
		return Contender{}, false
	}
	return all[i], true
}

func (m manner) contender(d database) Contender {
	c := openedOn(d, m.registry, m.wake)[0]
	c.Name, c.Settings, c.Loads = "sqllock "+m.name+"/"+d.short, m.settings, m.contests
	c.Quick = m.registry.IdleBetweenTries == 0
	if d.kind == durable.Postgres {
		c.Loads = slices.Concat(m.contests, m.onPostgres)
	}
	return c
}

// mixed are sqllock by its defaults and Spring, on one table.
func mixed(d database) Contender {
	ours, theirs := manners[0].contender(d), spring{d}.contender(nil)
	name := ours.Name
	ours.Name, ours.Beside = "sqllock beside "+theirs.Name, []string{name, theirs.Name}
	ours.Settings = "half of the processes each; the defaults of both"
	ours.Loads, ours.Quick = []string{OneLock}, false
	ours.Prepare = theirs.Prepare
	return ours
}
