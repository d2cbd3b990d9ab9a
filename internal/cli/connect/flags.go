// Package connect has the flags that all commands share, and opens the database and
// the lock table that they choose.
package connect

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// DSNVariable is the environment variable that holds the DSN if no flag does.
const DSNVariable = "SQLLOCK_DSN"

// Flags are the flags that all commands share.
type Flags struct {
	DSN, Prefix, Region string
	PlainKeys           bool
}

// Register adds the flags to a set.
func (f *Flags) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.DSN, "dsn", "", "the database (default: $"+DSNVariable+", else a local SQLite file)")
	flags.StringVar(&f.Prefix, "prefix", dialect.DefaultPrefix, "the prefix before LOCK in the name of the table")
	flags.StringVar(&f.Region, "region", sqllock.DefaultRegion, "the region of the keys")
	flags.BoolVar(&f.PlainKeys, "plain-keys", false, "store keys unchanged in LOCK_KEY, instead of Spring's mapping")
}

// Keys returns the mapping of keys that the flags choose.
func (f *Flags) Keys() sqllock.KeyMapper {
	if f.PlainKeys {
		return sqllock.PlainKeys
	}
	return sqllock.SpringKeys
}

// AddTTL gives a command the flag --ttl. Only tables without EXPIRED_AFTER need it: their
// rows do not say when they expire.
func AddTTL(cmd *cobra.Command, ttl *time.Duration) {
	cmd.Flags().DurationVar(ttl, "ttl", sqllock.DefaultTTL,
		"time-to-live of the locks, needed only for a table without EXPIRED_AFTER")
}
