package migrations

import (
	"context"
	"errors"
	"io"

	"github.com/golang-migrate/migrate/v4/database"
)

// A stepper runs golang-migrate's steps on a session that holds the lock.
//
// golang-migrate's own drivers are not used, because
//   - they take no context: while another process holds the lock, a goroutine waits on the
//     connection,
//   - SQLite's locks only within the process,
//   - PostgreSQL's needs a session of the server, which PgBouncer does not provide,
//   - MySQL's needs multiStatements and accepts no schema,
//   - a step that fails half-way leaves a dirty state, which an operator must repair,
//   - each of them links a driver.
type stepper struct {
	ctx     context.Context // golang-migrate passes no context
	session *session
	version uint
	only    uint // the only version that is recorded, or 0 for all
}

var errUnsupported = errors.New("not supported")

// Open is never called.
func (d *stepper) Open(string) (database.Driver, error) { return nil, errUnsupported }

// Close leaves the connection to the session.
func (d *stepper) Close() error { return nil }

// Lock does nothing: the session acquired the lock before it read the version.
func (d *stepper) Lock() error { return nil }

// Unlock does nothing: the session releases the lock.
func (d *stepper) Unlock() error { return nil }

// Run runs the statements of a file.
func (d *stepper) Run(file io.Reader) error {
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	return d.session.runFile(d.ctx, string(text))
}

// SetVersion stores a version when it is complete. It does not store a dirty version: a step
// that fails is rolled back or can be repeated.
func (d *stepper) SetVersion(version int, dirty bool) error {
	if dirty {
		return nil
	}
	number := uint(max(version, 0))
	if d.only == 0 || d.only == number {
		if err := d.session.write(d.ctx, number); err != nil {
			return err
		}
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
