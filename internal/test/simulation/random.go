package simulation

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// A source has the random numbers of one actor. Each has its own, so that its numbers do not
// depend on which of two actors comes first in one instant.
type source struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func newSource(plan *Plan, name string) *source {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name))
	return &source{rand: rand.New(rand.NewPCG(plan.Seed, sum.Sum64()+uint64(plan.Salt)))} //nolint:gosec // they have to be repeatable
}

func (s *source) int64N(n int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.Int64N(n)
}

func (s *source) intN(n int) int { return int(s.int64N(int64(n))) }

func (s *source) chance(p float64) bool { return s.float() < p }

func (s *source) upTo(d time.Duration) time.Duration { return time.Duration(1 + s.int64N(int64(d))) }

// around returns exponentially distributed times, as those between independent events are.
func (s *source) around(mean time.Duration) time.Duration {
	return time.Duration(float64(mean) * -math.Log(1-s.float()))
}

func (s *source) float() float64 { return float64(s.int64N(1<<53)) / (1 << 53) }

// latency returns how long a message is under way. It makes that no two of them arrive in the
// same instant.
func (s *source) latency(plan *Plan) time.Duration {
	return 20*time.Microsecond + s.upTo(plan.Latency)
}

// delay returns how much longer a slow message is under way: often for less than a lease lasts.
func (s *source) delay(plan *Plan) time.Duration {
	if s.chance(0.5) {
		return s.upTo(plan.shortestTTL() / 2)
	}
	return s.upTo(longestDelay)
}

// pickFault returns one of the faults that a plan allows, or "".
func (s *source) pickFault(plan *Plan, of ...Fault) Fault {
	var possible []Fault
	for _, f := range of {
		if plan.Can(f) {
			possible = append(possible, f)
		}
	}
	if len(possible) == 0 {
		return ""
	}
	return possible[s.intN(len(possible))]
}
