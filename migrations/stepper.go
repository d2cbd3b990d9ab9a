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
	next    uint // after the step that is under way
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

// Run runs the statements of a file. The version without the table that a step back drops is stored before them: if the step
// is interrupted, Up makes the table again.
func (d *stepper) Run(file io.Reader) error {
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	if d.drops() {
		if err := d.store(); err != nil {
			return err
		}
	}
	return d.session.runFile(d.ctx, string(text))
}

// SetVersion is called before and after the statements of a step. It does not store a dirty version: a step that fails is rolled
// back or can be repeated.
func (d *stepper) SetVersion(version int, dirty bool) error {
	if d.next = uint(max(version, 0)); dirty {
		return nil
	}
	if !d.drops() {
		if err := d.store(); err != nil {
			return err
		}
	}
	d.version = d.next
	return nil
}

// withoutFence and withoutNames are the versions before those that make the tables of tokens and of names.
const withoutFence, withoutNames = 1, 3

// drops reports whether the step drops a table, and does nothing else.
func (d *stepper) drops() bool {
	return d.next < d.version && (d.next == withoutFence || d.next == withoutNames)
}

func (d *stepper) store() error {
	if d.only != 0 && d.only != d.next {
		return nil
	}
	return d.session.write(d.ctx, d.next)
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
