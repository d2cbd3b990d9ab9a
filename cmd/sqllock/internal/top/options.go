package top

import (
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/listing"
)

// minInterval keeps the command from being a load.
const minInterval = 100 * time.Millisecond

// options are the flags of the command.
type options struct {
	interval time.Duration
	count    int
	limit    int
	sort     string
	names    []string
	ttl      time.Duration
}

// check rejects values that make no sense.
func (o *options) check() error {
	switch {
	case o.interval < minInterval:
		return exit.Usagef("--interval %v: it must be at least %v", o.interval, minInterval)
	case o.count < 0:
		return exit.Usagef("--count %d is negative", o.count)
	case o.limit < 1:
		return exit.Usagef("--limit %d: it must be at least 1", o.limit)
	case !listing.Order(o.sort).Valid():
		return exit.Usagef("--sort %s: it must be key, region, holder, age or left, or one of them after a minus", o.sort)
	}
	return nil
}
