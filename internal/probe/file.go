package probe

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
)

// A File is that of a database that has one, SQLite's, as it was when the table was opened. If it is removed or
// replaced, connections go on with what they have open, which no other process sees. The zero value is always there:
// a server's, a database in memory, or a file that another machine has.
type File struct {
	path string
	was  fs.FileInfo
}

// IsGone reports whether the path leads to no file, or to another one. The system may have an error of its own to
// say, which decides nothing.
func (f File) IsGone() bool {
	if f.was == nil {
		return false
	}
	is, err := os.Stat(f.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(f.was, is)
}

// findFile asks the database for its file.
func (q Question) findFile(ctx context.Context, layout dialect.Layout) (File, error) {
	question := q.Dialect.Statements(layout, q.Names).File
	if question == "" {
		return File{}, nil
	}
	return dbcall.CallInTime(ctx, q.Server, Opening, 0, func(ctx context.Context) (f File, err error) {
		if err := q.Pool.DB.QueryRowContext(ctx, question).Scan(&f.path); err != nil { // SQLite's
			return File{}, err
		}
		if f.was, err = os.Stat(f.path); err != nil {
			return File{}, nil //nolint:nilerr // it is not this machine's to look at
		}
		return f, nil
	}, nil)
}
