package simulation

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// A Plan has the settings of a world. A seed determines it. With the same plan and seed, the same
// happens again: see the package's documentation.
type Plan struct {
	Seed      uint64
	Salt      int // for other random numbers in the same plan
	Shape     Shape
	Layout    dialect.Layout
	Keys      int
	Duration  time.Duration // of virtual time, until the faults end
	Processes []ProcessPlan
	Faults    []Fault
	// FaultRate is the probability that a statement meets a fault. If Bursts, the next one of the
	// same process meets another with the probability burstRate: many bugs need two in a row.
	FaultRate float64
	Bursts    bool
	// Offset and Drift are by how much the database's clock is wrong, and by what part of
	// a second it gains in each second.
	Offset time.Duration
	Drift  float64
	// Busy is how long a writer waits for another one: SQLite's busy_timeout.
	Busy time.Duration
	// Latency is how long a message is under way at most. If it is long, calls are batched.
	Latency time.Duration
	// Think is the mean time between two locks of a worker, and Hold that for which it holds
	// one. Life is how long a process lives on average until it dies or closes its registry.
	Think, Hold, Life time.Duration
	// Joint is whether callers lock several keys together, beside those that lock one.
	Joint bool
	// Permits is how many permits a semaphore has that callers use beside the locks; 0 means that
	// there is none. ReadWrite is whether there is a read-write lock.
	Permits   int
	ReadWrite bool
}

// A Shape is a kind of world in which some bugs show sooner than in others.
type Shape string

const (
	// General worlds may have all settings and faults.
	General Shape = "general"
	// Definite worlds have many faults, but no statement arrives after its caller has returned.
	// So a row that is left behind is deleted by the next acquisition or by Close.
	Definite Shape = "definite"
	// Crowded worlds have processes of many callers that begin at the same time, so that
	// statements are batched and locks are handed over, and most of their faults are delays.
	Crowded Shape = "crowded"
	// Contended worlds have no faults, and one lock that all callers of several processes want all the time.
	Contended Shape = "contended"
)

// burstRate is the probability of a fault after another.
const burstRate = 0.3

// A ProcessPlan is the settings of one process.
type ProcessPlan struct {
	Name        string // p1, p2, …
	Workers     int
	Repository  sqllock.RepositoryOptions
	Registry    sqllock.RegistryOptions // without functions and a Waker
	Connections int                     // of its pool; 0 means no limit
	Wakes       bool                    // it has a Waker
	Watches     bool                    // its driver watches contexts
	Deferred    bool                    // its guarded transactions are not writers from the beginning
	MinHold     bool                    // some of its locks have a minimum hold
}

// NewPlan returns the plan of a seed.
func NewPlan(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it has to be repeatable
	p := Plan{
		Seed:     seed,
		Shape:    pick(r, General, General, Definite, Crowded),
		Layout:   pick(r, dialect.Spring7, dialect.Spring7, dialect.Spring6),
		Keys:     1 + r.IntN(5),
		Duration: time.Duration(5+r.IntN(15)) * time.Minute,
		Offset:   pick(r, 0, 0, 3*time.Hour, -20*365*24*time.Hour),
		Drift:    pick(r, 0, 0.01, -0.01),
		Busy:     pick(r, 0, 2*time.Second, 10*time.Second),
		Latency:  pick(r, time.Millisecond/2, time.Millisecond/2, 30*time.Millisecond),
		Think:    pick(r, 300*time.Millisecond, time.Second, 3*time.Second, 6*time.Second),
		Hold:     pick(r, 100*time.Millisecond, time.Second, 3*time.Second),
		Life:     2 * time.Minute,
	}
	if p.Shape == Definite || r.IntN(6) > 0 { // the others have no faults at all, and nothing may go wrong in them
		p.drawFaults(r)
	}
	ttl := pick(r, time.Second, 2*time.Second, 5*time.Second, 10*time.Second)
	fencing := r.IntN(10) > 0
	for i := range 1 + r.IntN(4) {
		own := ttl
		if p.Layout == dialect.Spring7 && r.IntN(3) == 0 {
			own = pick(r, time.Second, 3*time.Second, 10*time.Second)
		}
		process := newProcessPlan(r, own, fencing)
		process.Name = "p" + strconv.Itoa(i+1)
		p.Processes = append(p.Processes, process)
	}
	switch p.Shape {
	case Definite:
		p.makeDefinite(r)
	case Crowded:
		p.makeCrowded(r)
	case General, Contended: // which is drawn below
	}
	p.drawOutageWaits(rand.New(rand.NewPCG(seed, 2))) //nolint:gosec // as above
	p.drawSeveralRows(rand.New(rand.NewPCG(seed, 3))) //nolint:gosec // as above
	p.drawContended(rand.New(rand.NewPCG(seed, 4)))   //nolint:gosec // as above
	return p
}

// drawSeveralRows draws which locks there are that have several rows. It draws from a source of its
// own, as drawOutageWaits does.
func (p *Plan) drawSeveralRows(r *rand.Rand) {
	if p.Joint = r.IntN(3) == 0; p.Joint {
		p.Keys = 2 + r.IntN(4)
	}
	if r.IntN(4) == 0 {
		p.Permits = 1 + r.IntN(4)
	}
	p.ReadWrite = r.IntN(4) == 0
	if p.Permits > 0 || p.ReadWrite {
		for i := range p.Processes { // they need a lock object for each row
			p.Processes[i].Registry.CacheCapacity = 0
		}
	}
}

// drawOutageWaits draws from a source of its own, so that all else in the world of a seed stays as
// it was before this setting was there.
func (p *Plan) drawOutageWaits(r *rand.Rand) {
	for i := range p.Processes {
		p.Processes[i].Registry.WaitThroughOutages = p.Shape == General && r.IntN(3) == 0
	}
}

// drawContended makes one world out of twenty contended. It draws from a source of its own, too.
func (p *Plan) drawContended(r *rand.Rand) {
	if r.IntN(20) > 0 {
		return
	}
	p.Shape, p.Keys, p.Faults, p.FaultRate = Contended, 1, nil, 0
	p.Duration, p.Latency = 30*time.Second, time.Millisecond/2
	p.Think, p.Hold = time.Millisecond, 15*time.Millisecond
	p.Joint, p.Permits, p.ReadWrite = false, 0, false
	process := p.Processes[0]
	process.Registry.HandOff, process.Registry.MaxHold, process.MinHold = false, 0, false
	process.Workers, process.Connections, process.Wakes = 2, 0, false
	p.Processes = nil
	for i := range 3 + r.IntN(4) {
		process.Name = "p" + strconv.Itoa(i+1)
		p.Processes = append(p.Processes, process)
	}
}

func (p *Plan) drawFaults(r *rand.Rand) {
	for _, f := range AllFaults {
		if r.IntN(2) == 0 {
			p.Faults = append(p.Faults, f)
		}
	}
	p.FaultRate = pick(r, 0.0005, 0.005, 0.02, 0.1, 0.3)
	p.Bursts = r.IntN(2) == 0
}

func (p *Plan) makeDefinite(r *rand.Rand) {
	p.Faults = slices.DeleteFunc(p.Faults, func(f Fault) bool { return f == LateRequest })
	p.FaultRate = pick(r, 0.02, 0.1, 0.3)
	p.Life = 30 * time.Second
	for i := range p.Processes {
		p.Processes[i].Watches = true
	}
}

func (p *Plan) makeCrowded(r *rand.Rand) {
	p.Keys = 1 + r.IntN(4)
	p.Latency = 30 * time.Millisecond
	p.Hold = p.shortestTTL() / 4 // so that some leases are handed over when half of them is left
	if len(p.Faults) > 0 {
		p.Faults = slices.DeleteFunc(p.Faults, func(f Fault) bool { return f == Slow || !slices.Contains(delays, f) })
		p.Faults = append(p.Faults, Slow)
		p.FaultRate = pick(r, 0.05, 0.1, 0.2)
	}
	for i := range p.Processes {
		process := &p.Processes[i]
		process.Workers = 4 + r.IntN(3)
		process.Repository.DisableBatching = false
		process.Registry.HandOff = r.IntN(4) > 0
		process.Registry.NoRenew = r.IntN(3) != 0
	}
}

func newProcessPlan(r *rand.Rand, ttl time.Duration, fencing bool) ProcessPlan {
	p := ProcessPlan{
		Workers: 1 + r.IntN(6),
		Repository: sqllock.RepositoryOptions{
			TTL:             ttl,
			Isolation:       pick(r, sqllock.Serializable, sqllock.ReadCommitted, sqllock.Autocommit),
			DisableBatching: r.IntN(3) == 0,
			DisableFencing:  !fencing,
		},
		Registry: sqllock.RegistryOptions{
			TTL:              ttl,
			IdleBetweenTries: pick(r, 100*time.Millisecond, 200*time.Millisecond, time.Second),
			NoRenew:          r.IntN(2) != 0,
			HandOff:          r.IntN(2) == 0,
			CacheCapacity:    pick(r, 0, 0, 2),
		},
		Connections: pick(r, 0, 2, 3, 4),
		Wakes:       r.IntN(3) == 0,
		Watches:     r.IntN(2) == 0,
		MinHold:     r.IntN(3) == 0,
		Deferred:    r.IntN(2) == 0,
	}
	if r.IntN(4) == 0 {
		p.Registry.MaxHold = ttl * time.Duration(1+r.IntN(4))
	}
	return p
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// Can reports whether a fault may occur in the world.
func (p *Plan) Can(f Fault) bool { return slices.Contains(p.Faults, f) }

// isDefinite reports whether no statement arrives after its caller has returned.
func (p *Plan) isDefinite() bool {
	return !p.Can(LateRequest) && !slices.ContainsFunc(p.Processes, func(process ProcessPlan) bool { return !process.Watches })
}

// LongestTTL returns the longest time-to-live of a lease in the world, renewals for longer
// included.
func (p *Plan) LongestTTL() time.Duration {
	longest := time.Duration(0)
	for _, process := range p.Processes {
		longest = max(longest, process.Registry.TTL)
	}
	return longest * longerTTL
}

func (p *Plan) shortestTTL() time.Duration {
	shortest := p.Processes[0].Registry.TTL
	for _, process := range p.Processes {
		shortest = min(shortest, process.Registry.TTL)
	}
	return shortest
}

// String describes the plan to people: what is set.
func (p *Plan) String() string {
	text := set(*p) + "\n"
	for _, process := range p.Processes {
		text += fmt.Sprintf("  %s; %s; %s\n", set(process), set(process.Repository), set(process.Registry))
	}
	return text
}

// set returns the fields of a struct that are set, but for the structs among them.
func set(of any) string {
	var words []string
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		name, value := v.Type().Field(i).Name, v.Field(i)
		if value.Kind() != reflect.Struct && name != "Processes" && !value.IsZero() {
			words = append(words, fmt.Sprint(name, " ", value))
		}
	}
	return strings.Join(words, ", ")
}
