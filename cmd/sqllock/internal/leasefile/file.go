// Package leasefile has the files in which sqllock acquire leaves leases for later steps of a pipeline, and the subcommands
// that read them: extend, release, and the renewer, which acquire starts in the background.
//
// A file is no lock: the row in the database is. The file has what proves that a step is its holder, the CLIENT_ID of this
// one acquisition. So each command asks the database, and a file that is copied, old, or left behind does no harm.
package leasefile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
)

// A File is a lease that outlasts the process which acquired it. Its JSON form is documented in docs/cli.md.
type File struct {
	Format         int       `json:"format"`
	Lock           string    `json:"lock"`   // what messages call it
	Keys           []string  `json:"keys"`   // of its rows
	Holder         string    `json:"holder"` // CLIENT_ID of all of them
	Token          int64     `json:"token"`  // 0 without fencing
	TTLSeconds     float64   `json:"ttl_seconds"`
	MinHoldSeconds float64   `json:"min_hold_seconds"` // how long release keeps the rows, from the acquisition, or 0
	Acquired       time.Time `json:"acquired"`
	Database       string    `json:"database"` // without passwords, for messages
	Prefix         string    `json:"prefix"`
	Region         string    `json:"region"`
	PlainKeys      bool      `json:"plain_keys"`
}

const currentFormat = 1

// New returns the file of a lease that was just acquired.
func New(lock string, lease *sqllock.Lease, ttl, minHold time.Duration, c *connect.Connection, flags *connect.Flags) *File {
	return &File{
		Format: currentFormat, Lock: lock, Keys: lease.Keys(), Holder: lease.Holder(), Token: lease.Token(), TTLSeconds: ttl.Seconds(), MinHoldSeconds: minHold.Seconds(),
		Acquired: time.Now().UTC().Round(time.Millisecond), Database: databaseOf(c), Prefix: flags.Prefix, Region: flags.Region, PlainKeys: flags.PlainKeys,
	}
}

// databaseOf returns the name of a database that is the same in each directory.
func databaseOf(c *connect.Connection) string {
	for _, scheme := range []string{"sqlite:", "file:"} {
		if path, ok := strings.CutPrefix(c.Name, scheme); ok {
			if path, err := filepath.Abs(path); err == nil {
				return "sqlite:" + path
			}
		}
	}
	return c.Name
}

func (f *File) ttl() time.Duration     { return duration(f.TTLSeconds) }
func (f *File) minHold() time.Duration { return duration(f.MinHoldSeconds) }

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// errForeign is a file that acquire has not written.
var errForeign = errors.New("it is not a lease file, which sqllock acquire writes")

// read reads a file, or stdin if its path is a dash.
func read(path string, stdin io.Reader) (*File, error) {
	if path == "-" {
		f, err := parse(stdin)
		if err != nil {
			return nil, exit.Usagef("standard input: %w", err)
		}
		return f, nil
	}
	f, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.WithHint(exit.Usagef("%w", err), "the file of sqllock acquire --file; or, to break the lock of another holder, sqllock unlock --force KEY")
	}
	if err != nil {
		return nil, exit.Usagef("%s: %w", format.Printable(path), err)
	}
	return f, nil
}

func open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return parse(file)
}

func parse(r io.Reader) (*File, error) {
	f, d := &File{}, json.NewDecoder(r)
	switch err := d.Decode(f); {
	case err != nil, d.More(), f.Format < 1, f.Lock == "", f.Holder == "", len(f.Keys) == 0, len(f.Keys) > sqllock.MaxKeys, f.ttl() < sqllock.MinTTL, f.minHold() < 0:
		return nil, errForeign
	case f.Format > currentFormat:
		return nil, fmt.Errorf("a newer sqllock has written it (format %d)", f.Format)
	}
	return f, nil
}

// A Draft is a file that is about to be written. None replaces a file: who has the lease of that could not extend or release
// it any more, and would do so with the lease of another.
type Draft struct {
	path   string // a dash is stdout
	stdout io.Writer
	flags  *connect.Flags
}

// NewDraft returns the draft of a file, or of stdout if the path is a dash. It returns an error if the file exists or cannot be
// created: acquire may wait for long before it writes.
func NewDraft(ctx context.Context, path string, stdout io.Writer, flags *connect.Flags) (*Draft, error) {
	d := &Draft{path, stdout, flags}
	if path == "-" {
		return d, nil
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, d.exists(ctx)
	}
	trial, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err == nil {
		err = errors.Join(trial.Close(), os.Remove(trial.Name()))
	}
	if err != nil {
		return nil, cannotCreate(path, err)
	}
	return d, nil
}

// cannotCreate returns the error about a file in whose directory another one cannot be created. It leaves out the name of that.
func cannotCreate(path string, err error) error {
	if _, missing := os.Stat(filepath.Dir(path)); errors.Is(missing, fs.ErrNotExist) {
		return exit.Usagef("--file %s: the directory %s does not exist", format.Printable(path), format.Printable(filepath.Dir(path)))
	}
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	return exit.Usagef("--file %s: %w", format.Printable(path), err)
}

// Write writes the file.
func (d *Draft) Write(ctx context.Context, f *File) error {
	if d.path == "-" {
		return format.JSONLine(d.stdout, f)
	}
	file, err := os.OpenFile(d.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return d.exists(ctx)
	case err != nil:
		return err
	}
	if err := errors.Join(format.JSON(file, f), file.Close()); err != nil {
		d.Remove()
		return err
	}
	return nil
}

// Remove removes the file that Write has written.
func (d *Draft) Remove() {
	if d.path != "-" {
		_ = os.Remove(d.path)
	}
}

// existsLimit limits how long the database is asked what a file is good for.
const existsLimit = 3 * time.Second

// exists returns the error that the file exists. It says what is in it.
func (d *Draft) exists(ctx context.Context) error {
	const ownPath = `a new path for each acquisition: lease=$(mktemp -u), --file "$lease"`
	if !isRegular(d.path) {
		return exit.WithHint(exit.Usagef("%s is no regular file", format.Printable(d.path)), "--file -, which prints the lease; or "+ownPath)
	}
	f, err := open(d.path)
	if err != nil {
		return exit.WithHint(exit.Usagef("%s exists, and is not the file of a lease", format.Printable(d.path)), ownPath)
	}
	ctx, cancel := context.WithTimeout(ctx, existsLimit)
	defer cancel()
	state, hint, flags := "", ownPath, *d.flags
	err = f.with(ctx, &flags, func(h held) error {
		loss := h.loss(ctx)
		switch {
		case loss == nil:
			state = ", which lasts"
		case exit.CodeOf(loss) == exit.LockLost && !h.isElsewhere():
			state, hint = ", which is over", "sqllock release "+args.Key(d.path)+", which removes it; or "+ownPath
		}
		return nil
	})
	if state == "" || err != nil {
		state = fmt.Sprintf(", acquired %s ago in %s", format.Duration(time.Since(f.Acquired)), format.Printable(f.Database))
	}
	return exit.WithHint(exit.Usagef("%s exists: it has the lease of %q%s", format.Printable(d.path), f.Lock, state), "%s", hint)
}

// isRegular reports whether a path is that of a file, or of nothing that could be opened. To read a pipe would wait for its writer.
func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

// remove removes the file of a lease that is over, unless it is that of another lease by now.
func (f *File) remove(path string) error {
	if path == "-" || !isRegular(path) {
		return nil
	}
	now, err := open(path)
	if err != nil || now.Holder != f.Holder {
		return nil //nolint:nilerr // it is gone, or not that file any more
	}
	return os.Remove(path)
}
