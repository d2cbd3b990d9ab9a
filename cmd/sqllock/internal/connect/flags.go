// Package connect has the flags that all commands share, and opens the database and
// the lock table that they choose.
package connect

import (
	"cmp"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// DSNVariable is the environment variable that holds the DSN if no flag does.
const DSNVariable = "SQLLOCK_DSN"

// The environment variables of a prefix and a region that no flag gives, so that the lines of a crontab need not repeat them.
const (
	prefixVariable = "SQLLOCK_PREFIX"
	regionVariable = "SQLLOCK_REGION"
)

// Flags are the flags that all commands share.
type Flags struct {
	DSN, Prefix, Region string
	Local               bool // the default file, also if the environment has a DSN
	PlainKeys           bool
	NoFencing           bool // lock without fencing tokens
	Unverified          bool // use a server that sqllock does not support
	BriefWaits          bool // see session.Settings
}

// A dsnValue is a DSN on the command line.
type dsnValue string

func (d *dsnValue) String() string { return string(*d) }
func (*dsnValue) Type() string     { return "string" }

// Set implements pflag.Value. An empty DSN is most likely a variable that is not set: locks in the
// default file would exclude no other machine.
func (d *dsnValue) Set(text string) error {
	if text == "" {
		return errors.New("the DSN is empty: set the variable that it comes from")
	}
	*d = dsnValue(text)
	return nil
}

// Register adds the flags to a set.
func (f *Flags) Register(flags *pflag.FlagSet) {
	flags.Var((*dsnValue)(&f.DSN), "dsn", "the database (default: $"+DSNVariable+"); or --local")
	flags.BoolVar(&f.Local, "local", false, "use the SQLite file of this user on this machine, which no other machine can use")
	flags.StringVar(&f.Prefix, "prefix", cmp.Or(os.Getenv(prefixVariable), dialect.DefaultPrefix), "the prefix before LOCK in the name of the table; its default is $"+prefixVariable+", if that is set")
	flags.StringVar(&f.Region, "region", cmp.Or(os.Getenv(regionVariable), sqllock.DefaultRegion), "the region of the keys; its default is $"+regionVariable+", if that is set")
	flags.BoolVar(&f.PlainKeys, "plain-keys", false, "store keys unchanged in LOCK_KEY, instead of Spring's mapping")
	flags.BoolVar(&f.Unverified, "unverified", false, "use a server that sqllock does not support, such as CockroachDB: it may give a lock to several at once")
}

// Keys returns the mapping of keys that the flags choose.
func (f *Flags) Keys() sqllock.KeyMapper {
	if f.PlainKeys {
		return sqllock.PlainKeys
	}
	return sqllock.SpringKeys
}

// AddNoFencing adds the flag of commands that acquire locks.
func (f *Flags) AddNoFencing(flags *pflag.FlagSet) {
	flags.BoolVar(&f.NoFencing, "no-fencing", false, "draw no fencing tokens: for a table of Spring's, without the source of tokens that sqllock migrate up creates")
}

// AddTTL gives a command the flag --ttl. Only tables without EXPIRED_AFTER need it: their
// rows do not say when they expire.
func AddTTL(cmd *cobra.Command, ttl *time.Duration) {
	cmd.Flags().DurationVar(ttl, "ttl", sqllock.DefaultTTL,
		"time-to-live of the locks, needed only for a table without EXPIRED_AFTER")
}
