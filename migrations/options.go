package migrations

import (
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

// DefaultTTL is Spring's default time-to-live.
const DefaultTTL = 10 * time.Second

// Options say which tables to migrate, and how. Nil and the zero value mean
// Spring's defaults.
type Options struct {
	// Prefix stands before the names of the tables, as [dialect.NamesFor] says.
	// Default "INT_". A schema in it must exist.
	Prefix string

	// Layout says how far Up goes. Default [dialect.Spring7]; a fleet that
	// shares its locks with Spring Integration 6 or older needs
	// [dialect.Spring6].
	Layout dialect.Layout

	// TTL is how long the rows that are there when EXPIRED_AFTER is added are
	// taken to last from then on: the time-to-live of the locks' users, or
	// longer. It is rounded down to microseconds. Default [DefaultTTL].
	TTL time.Duration

	// Force drops the lock table even if locks are held in it.
	Force bool
}

// settings are validated options, with everything that follows from them.
type settings struct {
	dialect     dialect.Dialect
	flavour     flavour
	lock        table
	bookkeeping table
	target      uint
	ttl         time.Duration
	force       bool
}

func newSettings(d dialect.Dialect, opts *Options) (settings, error) {
	if opts == nil {
		opts = &Options{}
	}
	f, ok := flavours[d.Name]
	if !ok {
		return settings{}, fmt.Errorf("%w %q", ErrDialect, d.Name)
	}
	names, err := dialect.NamesFor(opts.Prefix)
	if err != nil {
		return settings{}, err
	}
	if opts.TTL < 0 {
		return settings{}, fmt.Errorf("%w: negative TTL %v", ErrOption, opts.TTL)
	}
	s := settings{
		dialect:     d,
		flavour:     f,
		lock:        newTable(names, "LOCK"),
		bookkeeping: newTable(names, "LOCK_MIGRATIONS"),
		target:      latest,
		ttl:         opts.TTL,
		force:       opts.Force,
	}
	if s.ttl == 0 {
		s.ttl = DefaultTTL
	}
	switch opts.Layout {
	case 0, dialect.Spring7:
	case dialect.Spring6:
		s.target = spring6
	default:
		return settings{}, fmt.Errorf("%w: unknown layout %d", ErrOption, opts.Layout)
	}
	return s, nil
}
