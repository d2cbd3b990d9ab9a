package dsn

import (
	"errors"
	"io/fs"
	"os"

	"github.com/sqllock/sqllock/dialect"
)

// A Target is the database that a DSN names.
type Target struct {
	Dialect  dialect.Dialect
	Redacted string // the DSN without passwords and parameters

	// Of PostgreSQL: how many hosts there are to choose from, whether only one that accepts
	// writes is chosen, and lib/pq's binary_parameters.
	Hosts            int
	ReadWrite        bool
	BinaryParameters bool

	driver, source string // for sql.Open
	creating       string // SQLite: the source that creates a missing file
	file           string // SQLite: the path, where it is known
}

// Missing reports whether the target is a file that does not exist.
func (t Target) Missing() bool {
	_, err := os.Stat(t.file)
	return t.file != "" && errors.Is(err, fs.ErrNotExist)
}
