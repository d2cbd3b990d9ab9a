package migrations

import (
	"strings"

	"github.com/sqllock/sqllock/internal/sqltext"
)

// A table is the name of a table, in parts.
type table struct{ schema, unqualified, suffix string }

func newTable(names sqltext.Names, suffix string) table {
	return table{schema: names.Schema, unqualified: names.Prefix, suffix: suffix}
}

// String returns the name with the schema, if there is one.
func (t table) String() string { return t.prefix() + t.suffix }

func (t table) prefix() string {
	if t.schema == "" {
		return t.unqualified
	}
	return t.schema + "." + t.unqualified
}

// fill puts the name into a text. sqltext.NamesFor guarantees that names are identifiers,
// so they cannot break out of quotes.
func (t table) fill(text string) string {
	return strings.NewReplacer(
		"{table}", t.String(),
		"{schema}", t.schema,
		"{name}", t.unqualified+t.suffix,
	).Replace(text)
}
