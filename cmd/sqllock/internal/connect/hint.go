package connect

import (
	"errors"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// defaultFileHint is for users whose home directory is not writable, or not theirs.
const defaultFileHint = "--dsn sqlite:FILE, or XDG_STATE_HOME=DIRECTORY, where this user may write"

// UnsupportedHint is for a server that sqllock does not support.
const UnsupportedHint = "a server that docs/clusters.md lists as tested; or --unverified, if it does no harm that several hold a lock at once"

// withOpenHint adds the hint for an error of Open.
func withOpenHint(err error, target session.Target, prefix string, isDefault bool, file Presence) error {
	switch {
	case isDefault && sqlitedriver.IsUnwritable(err):
		return exit.WithHint(err, "%s", defaultFileHint)
	case target.Missing() && file == MustExist:
		return exit.WithHint(err, "correct the name of the file; or %s, which creates it in a directory that exists", dbcall.MigrateUp(prefix))
	default:
		return err
	}
}

// MissesTable reports whether `sqllock migrate up` helps: the server says that a table
// or a column does not exist.
func (c *Connection) MissesTable(err error) bool {
	return errors.Is(err, sqllock.ErrSchema) && sqltext.Of(c.Dialect).Classify(err) == sqltext.Schema
}

// Hint returns the hint for an error of any command, or "".
func Hint(err error) string {
	switch own := exit.Hint(err); {
	case own != "":
		return own
	case dbcall.Is(err, dbcall.Unsupported):
		return UnsupportedHint
	case errors.Is(err, sqllock.ErrSchema):
		return "sqllock doctor" // the table exists, but is not a lock table
	case sqlitedriver.IsUnwritable(err):
		return sqlitedriver.WritableHint
	case errors.Is(err, sqllock.ErrPinned):
		return "the same again when that transaction has ended; sqllock describe KEY names its session"
	case errors.Is(err, sqllock.ErrReadOnly):
		return "the DSN of the primary server, which accepts writes"
	default:
		if cure := failure.CureOf(err); cure != nil {
			return cure.Text
		}
		return ""
	}
}
