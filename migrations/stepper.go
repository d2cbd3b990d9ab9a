package migrations

import (
	"context"
	"errors"
	"io"

	"github.com/golang-migrate/migrate/v4/database"
)

// A stepper runs golang-migrate's steps on a session that holds the lock.
//
// golang-migrate's own drivers are not used. They know no context, so a lock
// that another process holds leaves a goroutine waiting on the connection; that
// of SQLite locks only within the process; that of PostgreSQL needs a session
// of the server's, which PgBouncer does not give; that of MySQL needs
// multiStatements and takes no schema; a step that fails half way leaves a
// dirty state for a human to mend; and each links a driver.
type stepper struct {
	ctx     context.Context // golang-migrate passes none
	session *session
	version uint
}

var errUnsupported = errors.New("not supported")

// Open is never called.
func (d *stepper) Open(string) (database.Driver, error) { return nil, errUnsupported }

// Close leaves the connection to the session.
func (d *stepper) Close() error { return nil }

// Lock does nothing: the session has held the lock since before the version was
// read.
func (d *stepper) Lock() error { return nil }

// Unlock does nothing, as Lock.
func (d *stepper) Unlock() error { return nil }

// Run runs the statements of a file.
func (d *stepper) Run(file io.Reader) error {
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	return d.session.runFile(d.ctx, string(text))
}

// SetVersion notes a version once it is complete. A dirty one is not noted: the
// step is undone if it fails, or else may be repeated.
func (d *stepper) SetVersion(version int, dirty bool) error {
	if dirty {
		return nil
	}
	number := uint(max(version, 0))
	if err := d.session.write(d.ctx, number); err != nil {
		return err
	}
	d.version = number
	return nil
}

// Version returns the version that the session has reached.
func (d *stepper) Version() (version int, dirty bool, err error) {
	if d.version == 0 {
		return database.NilVersion, false, nil
	}
	return int(d.version), false, nil
}

// Drop is never called.
func (d *stepper) Drop() error { return errUnsupported }
