package migrations

import (
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

// DefaultTTL is Spring's default time-to-live.
const DefaultTTL = 10 * time.Second

// Options are the settings of a migration. Nil and the zero value mean Spring's defaults.
type Options struct {
	// Prefix is the prefix of the tables' names: see [dialect.NamesFor]. If it contains
	// a schema, the schema must exist. Default "INT_".
	Prefix string

	// Layout is the layout to which Up migrates. [dialect.Spring6] makes a table that Spring
	// Integration 6 or older can share. [dialect.Spring7] adds the column EXPIRED_AFTER to a table
	// without it, after which these no longer work. Default: that of the lock table, or
	// [dialect.Spring7] if there is none.
	Layout dialect.Layout

	// TTL is the time-to-live of the existing locks. When EXPIRED_AFTER is added, all
	// existing rows get leases of this length; so use the longest time-to-live of all
	// processes. It is rounded down to microseconds. Default [DefaultTTL].
	TTL time.Duration

	// If Force is true, the lock table is dropped even if locks are held.
	Force bool
}

// settings are validated options, and values derived from them.
type settings struct {
	dialect     dialect.Dialect
	flavour     flavour
	lock        table
	bookkeeping table
	asked       dialect.Layout // by the options, or 0
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
		asked:       opts.Layout,
		ttl:         opts.TTL,
		force:       opts.Force,
	}
	if s.ttl == 0 {
		s.ttl = DefaultTTL
	}
	switch opts.Layout {
	case 0, dialect.Spring6, dialect.Spring7:
	default:
		return settings{}, fmt.Errorf("%w: unknown layout %d", ErrOption, opts.Layout)
	}
	return s, nil
}
