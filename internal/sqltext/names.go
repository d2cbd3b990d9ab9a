package sqltext

import (
	"fmt"
	"regexp"

	"github.com/sqllock/sqllock/dialect"
)

// maxPrefix leaves room for the longest suffix within PostgreSQL's 63 bytes.
const maxPrefix = 40

var prefixForm = regexp.MustCompile(`^(?:([A-Za-z_][A-Za-z0-9_]*)\.)?([A-Za-z_][A-Za-z0-9_]*)$`)

// Names are the names of the tables that belong to one prefix.
type Names struct {
	// Schema is the part of the prefix before the dot, or "".
	Schema string
	// Prefix is the part of the prefix after the dot.
	Prefix string
	// Lock is the lock table: Spring's INT_LOCK.
	Lock string
	// Fence is the sequence or table from which fencing tokens are drawn.
	Fence string
	// Name is the table of the names of keys and processes.
	Name string
	// Channel is the channel that is notified of deleted rows, if the database can:
	// [dialect.Channel], or "" for none. NamesFor leaves it empty.
	Channel string
}

// NamesFor returns the names for a prefix such as "INT_" or "billing.INT_". The empty
// prefix means [dialect.DefaultPrefix]. A bad one gives [dialect.ErrPrefix], which says what
// is permitted: names are inserted into statements unchanged and without quotes.
func NamesFor(prefix string) (Names, error) {
	if prefix == "" {
		prefix = dialect.DefaultPrefix
	}
	parts := prefixForm.FindStringSubmatch(prefix)
	if parts == nil || len(parts[1]) > maxPrefix || len(parts[2]) > maxPrefix {
		return Names{}, fmt.Errorf("%w %q: must be up to %d letters, digits and underscores, optionally after a schema and a dot",
			dialect.ErrPrefix, prefix, maxPrefix)
	}
	return Names{
		Schema: parts[1],
		Prefix: parts[2],
		Lock:   prefix + "LOCK",
		Fence:  prefix + "LOCK_FENCE",
		Name:   prefix + "LOCK_NAME",
	}, nil
}
