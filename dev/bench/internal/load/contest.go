package load

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/parallel"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/dev/bench/internal/stats"
	"github.com/sqllock/sqllock/internal/test/proc"
)

// A contest has processes compete: each of their callers acquires something, holds it for a moment, releases it, and
// asks again at once.
type contest struct {
	name   string
	groups []group
	open   competition
	times  int  // as long as the others; 0 is 1
	keeps  bool // the single waits, for a plot
}

// A group is processes with so many callers each. If a contest has several groups, each has a kind.
type group struct {
	processes, callers int
	kind               string
}

var contests = []contest{
	{name: contender.OneLock, groups: []group{{8, 2, ""}}, open: oneLock, keeps: true},
	{name: contender.OneLockLong, groups: []group{{8, 2, ""}}, open: oneLock, times: 6},
	{name: contender.OtherPauses, groups: []group{{8, 2, ""}}, open: oneLock},
	{name: contender.LoneCaller, groups: []group{{3, 2, "busy"}, {1, 1, "lone"}}, open: oneLock},
	{name: contender.ManyCallers, groups: []group{{24, 1, ""}}, open: oneLock},
	{name: contender.JointLock, groups: []group{{2, 2, sixKeys}, {6, 2, "one key"}}, open: jointLock},
	{name: contender.Semaphore, groups: []group{{4, 2, threePermits}, {4, 2, "one permit"}}, open: permits},
	{name: contender.ReadWrite, groups: []group{{2, 2, writer}, {6, 2, "reader"}}, open: readWriteLock},
}

// Contests are the loads in which processes compete. Their contenders are [contender.Contestants].
func Contests() []Load {
	var all []Load
	for _, c := range contests {
		all = append(all, Load{Name: c.name, Run: c.run})
	}
	return all
}

// An entrant is one process of a contest, or what stands for one: a session of its own.
type entrant struct {
	Number    int
	Contender string
	Callers   int
	Kind      string
}

// A call has waited from one time of [proc.Now] to another one. If it has not Acquired, it was still waiting at the end.
type call struct {
	Entrant      int
	Asked, Ended int64
	Acquired     bool
}

func (c contest) run(ctx context.Context, a *Arena, who contender.Contender) (round record.Round, err error) {
	lasts := a.Settings.Measure * time.Duration(max(1, c.times))
	entrants := c.entrants(who)
	parts := c.parts(entrants, a.Place(who), lasts)
	players := make([]*player, len(parts))
	defer func() {
		for _, p := range players {
			if p != nil {
				p.leave()
			}
		}
	}()
	if err := parallel.Do(len(parts), atOnce, func(i int) (err error) {
		players[i], err = enter(ctx, parts[i])
		return err
	}); err != nil {
		return round, err
	}
	for _, p := range players {
		p.ask("go")
	}
	var calls []call
	for _, p := range players {
		const late = time.Minute // for what hangs
		text, err := p.line(lasts + late)
		if err != nil {
			return round, err
		}
		var some []call
		if err := json.Unmarshal([]byte(text), &some); err != nil {
			return round, fmt.Errorf("%w: %w", errPlayer, err)
		}
		calls = append(calls, some...)
	}
	return c.round(entrants, calls, lasts), nil
}

func (c contest) entrants(who contender.Contender) []entrant {
	var all []entrant
	for _, g := range c.groups {
		for i := range g.processes {
			e := entrant{Number: len(all), Contender: who.Name, Callers: g.callers, Kind: g.kind}
			if n := len(who.Beside); n > 0 {
				e.Contender = who.Beside[i*n/g.processes]
				e.Kind = e.Contender
			}
			all = append(all, e)
		}
	}
	return all
}

// parts has a part for each process of the operating system.
func (c contest) parts(entrants []entrant, at contender.Place, lasts time.Duration) []part {
	key := fmt.Sprint("contest ", proc.Now()) // no row of an earlier contest is in its way
	var all []part
	for _, e := range entrants {
		who, _ := contender.Find(e.Contender)
		if last := len(all) - 1; last >= 0 && all[last].Contender == e.Contender && len(all[last].Entry.Entrants) < who.Together {
			all[last].Entry.Entrants = append(all[last].Entry.Entrants, e)
			continue
		}
		all = append(all, part{e.Contender, at, &entry{c.name, key, lasts, []entrant{e}}})
	}
	return all
}

// A side is what the callers of one kind have done. Times are in milliseconds.
type side struct {
	waits     []float64
	acquired  int
	waitsOn   float64 // the longest wait of a call that was still waiting at the end
	overtaken int     // how often one of them was overtaken, at most
	least     float64 // acquisitions of a caller, in the process that has the fewest
}

// round has the values of each kind of callers: KIND/per_s and so on. A call that was still waiting at the end
// counts with its wait until then.
func (c contest) round(entrants []entrant, calls []call, lasts time.Duration) record.Round {
	slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.Ended, b.Ended) })
	sides, each := make(map[string]*side), make([]float64, len(entrants))
	callers, acquired := 0, 0
	for _, e := range entrants {
		sides[e.Kind] = &side{least: math.Inf(1)}
		callers += e.Callers
	}
	for i, one := range calls {
		e := entrants[one.Entrant]
		sides[e.Kind].add(one, overtakers(calls[:i], one))
		if one.Acquired {
			acquired++
			each[e.Number] += 1 / float64(e.Callers)
		}
	}
	for _, e := range entrants {
		sides[e.Kind].least = min(sides[e.Kind].least, each[e.Number])
	}
	round := record.Round{Values: make(map[string]float64)}
	for kind, s := range sides {
		for name, value := range s.values(lasts, float64(max(1, acquired))/float64(callers)) {
			round.Values[kind+"/"+name] = value
		}
		if c.keeps && len(sides) == 1 {
			for _, wait := range s.waits {
				round.Samples = append(round.Samples, math.Round(wait*1000))
			}
		}
	}
	return round
}

func (s *side) add(one call, overtaken int) {
	wait := millis(time.Duration(one.Ended - one.Asked))
	s.waits = append(s.waits, wait)
	s.overtaken = max(s.overtaken, overtaken)
	if one.Acquired {
		s.acquired++
	} else {
		s.waitsOn = max(s.waitsOn, wait)
	}
}

// values has waits_on only if the longest wait has not ended. mean is how often a caller of any kind has acquired.
func (s *side) values(lasts time.Duration, mean float64) map[string]float64 {
	slices.Sort(s.waits)
	longest := stats.Quantile(s.waits, 1)
	values := map[string]float64{
		"per_s": float64(s.acquired) / lasts.Seconds(), "p50_ms": stats.Quantile(s.waits, 0.5), "p99_ms": stats.Quantile(s.waits, 0.99),
		"longest_ms": longest, "least_share": s.least / mean, "overtaken": float64(s.overtaken),
	}
	if s.waitsOn == longest {
		values["waits_on"] = 1
	}
	return values
}

// overtakers returns how many calls have asked later than one, and acquired before it did. Calls are in the order of
// their ends.
func overtakers(before []call, one call) (n int) {
	for i := len(before) - 1; i >= 0 && before[i].Ended > one.Asked; i-- {
		if before[i].Acquired && before[i].Asked > one.Asked {
			n++
		}
	}
	return n
}
