package dialect

import (
	"errors"
	"fmt"
	"regexp"
)

// DefaultPrefix is the prefix of Spring's tables.
const DefaultPrefix = "INT_"

// ErrPrefix is returned for a prefix that cannot stand in front of a table
// name.
var ErrPrefix = errors.New("invalid table prefix")

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
	// Fence is where fencing tokens are drawn from.
	Fence string
	// Channel is where removed rows are told, if the database can: [Channel], or ""
	// for nowhere, which NamesFor leaves it at.
	Channel string
}

// NamesFor returns the names for a prefix such as "INT_" or "billing.INT_".
// The empty prefix means [DefaultPrefix]. Letters, digits and underscores may
// be used, with one dot behind the name of a schema; anything else, and a part
// longer than 40 bytes, gives [ErrPrefix]. Names are put into statements as
// they are, so their case is kept.
func NamesFor(prefix string) (Names, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	parts := prefixForm.FindStringSubmatch(prefix)
	if parts == nil || len(parts[1]) > maxPrefix || len(parts[2]) > maxPrefix {
		return Names{}, fmt.Errorf("%w %q: up to %d letters, digits and underscores, with a schema and a dot before them if need be",
			ErrPrefix, prefix, maxPrefix)
	}
	return Names{
		Schema: parts[1],
		Prefix: parts[2],
		Lock:   prefix + "LOCK",
		Fence:  prefix + "LOCK_FENCE",
	}, nil
}
