package leader

import (
	"time"

	"github.com/sqllock/sqllock/internal/jitter"
)

// A backoff is a pause that doubles each time.
type backoff struct{ last, most time.Duration }

// shortestBackoff is the first pause of a backoff, unless most is shorter.
const shortestBackoff = 100 * time.Millisecond

// next returns the next pause, less up to a fifth at random, so that electors do not try in
// step.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, shortestBackoff), b.most)
	return b.last - jitter.N(b.last/5+1)
}
