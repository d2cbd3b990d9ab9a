package migrations

import (
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// DefaultTTL is Spring's default time-to-live.
const DefaultTTL = 10 * time.Second

// Options are the settings of a migration: Prefix, Layout, TTL and Force. Nil and the zero value mean
// Spring's defaults. The type is in package dialect, where applications that do not migrate get it from.
type Options = dialect.MigrateOptions

// settings are validated options, and values derived from them.
type settings struct {
	dialect     sqltext.Dialect
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
	texts := sqltext.Of(d)
	f, ok := flavours[texts.Name]
	if !ok {
		return settings{}, fmt.Errorf("%w %q", ErrDialect, d)
	}
	names, err := sqltext.NamesFor(opts.Prefix)
	if err != nil {
		return settings{}, err
	}
	if opts.TTL < 0 {
		return settings{}, fmt.Errorf("%w: negative TTL %v", ErrOption, opts.TTL)
	}
	s := settings{
		dialect:     texts,
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
