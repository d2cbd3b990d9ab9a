package locktable

import (
	"errors"
	"io/fs"
	"os"
)

// A file is that of a database that has one, SQLite's, as it was when the table was opened. If it is
// removed or replaced, connections go on with what they have open, which no other process sees. The zero
// value is always there: a server's, a database in memory, or a file that another machine has.
type file struct {
	path string
	was  fs.FileInfo
}

// isGone reports whether the path leads to no file, or to another one. The system may have an error of
// its own to say, which decides nothing.
func (f file) isGone() bool {
	if f.was == nil {
		return false
	}
	is, err := os.Stat(f.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(f.was, is)
}

var errGone = errors.New("the file of the database was removed or replaced while it was open, and other processes do not see what is written to it: create another repository, over a new pool")
