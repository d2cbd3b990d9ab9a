package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sqllock/sqllock"
)

// The exit codes. From 64 on they are those of sysexits.h, which scripts know
// from mail systems and which seldom meet the codes of other programs; exec
// passes on its child's code besides.
const (
	exitFailure     = 1  // anything that has no code of its own
	exitUsage       = 64 // EX_USAGE: bad input; nothing was done
	exitDatabase    = 69 // EX_UNAVAILABLE: trouble with the database
	exitNotAcquired = 75 // EX_TEMPFAIL: the lock was not to be had in time; try later
	exitLockLost    = 76 // EX_PROTOCOL: the lock was lost while it was needed
)

// An exitError ends the program with a code. If err is nil nothing is printed:
// the command has said all there is to say.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError makes an error of the user's: exit code 64.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// A hintedError carries advice, printed on a line of its own.
type hintedError struct {
	error
	hint string
}

func (e *hintedError) Unwrap() error { return e.error }

// withHint adds advice to an error: what the user may do about it.
func withHint(err error, format string, args ...any) error {
	return &hintedError{err, fmt.Sprintf(format, args...)}
}

// codeOf returns the exit code for what a command returned.
func codeOf(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, sqllock.ErrInvalid):
		return exitUsage
	case errors.Is(err, sqllock.ErrLockLost):
		return exitLockLost
	case errors.Is(err, sqllock.ErrNotAcquired):
		return exitNotAcquired
	case errors.Is(err, sqllock.ErrDatabase):
		return exitDatabase
	default:
		return exitFailure
	}
}

// report prints an error on one line, and a hint if there is one.
func report(w io.Writer, err error) {
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return
	}
	text, hint := textOf(err), hintFor(err)
	if hint != "" {
		text = strings.TrimSuffix(text, libraryHint)
	}
	text = fmt.Sprintf("sqllock: %s\n", text)
	if hint != "" {
		text += fmt.Sprintf("try: %s\n", hint)
	}
	_, _ = io.WriteString(w, text) // there is no other place to complain
}

// libraryHint is how the library ends its errors about the table. The command
// has a line of its own for that.
const libraryHint = " (run `sqllock migrate up`, or see docs/schema.md)"

// missesTable tells whether `sqllock migrate up` helps.
func missesTable(err error) bool {
	return errors.Is(err, sqllock.ErrSchema) && strings.Contains(err.Error(), libraryHint)
}

// migrateUp is the command that creates the table of a prefix.
func migrateUp(prefix string) string {
	if prefix == "" || prefix == sqllock.DefaultPrefix {
		return "sqllock migrate up"
	}
	return "sqllock migrate up --prefix " + prefix
}

// hintFor returns the advice for an error, or "".
func hintFor(err error) string {
	var hinted *hintedError
	switch {
	case errors.As(err, &hinted):
		return hinted.hint
	case missesTable(err):
		return migrateUp("")
	case errors.Is(err, sqllock.ErrSchema):
		return "sqllock doctor" // the table is there, but wrong
	case unwritable(err):
		return writableHint
	case errors.Is(err, sqllock.ErrReadOnly):
		return "the DSN of the primary server, which accepts writes"
	default:
		return ""
	}
}

// sentinels are the errors whose texts begin with the library's name. In a
// chain of them it would be repeated.
var sentinels = []error{
	sqllock.ErrNotAcquired, sqllock.ErrLockLost, sqllock.ErrDatabase, sqllock.ErrSchema, sqllock.ErrReadOnly,
	sqllock.ErrInvalid, sqllock.ErrNotHeld, sqllock.ErrCapacity, sqllock.ErrClosed,
}

// textOf returns the text of an error on one line, without the name in front.
func textOf(err error) string {
	text := strings.TrimPrefix(err.Error(), "sqllock: ")
	for _, sentinel := range sentinels {
		short := strings.TrimPrefix(sentinel.Error(), "sqllock: ")
		text = strings.ReplaceAll(text, sentinel.Error(), short)
	}
	if errors.Is(err, context.Canceled) {
		text = strings.Replace(text, context.Canceled.Error(), "interrupted", 1)
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
