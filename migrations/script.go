package migrations

import (
	"context"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

// Script returns the statements that [Goto] would run to bring tables in a state to a version, for those who change
// tables by hand: with comments, a semicolon after each, and without reading or writing a database. It is
// empty if nothing is to be done. The state is that which [Status] has returned; for tables that it
// cannot read, its Version suffices, and the tables are taken to be those of that version. [State].Target
// is the version to which [Up] would migrate.
//
// Nothing in the script checks whether locks are held, which Goto does: a comment says where that matters. On MySQL
// and MariaDB it has no lock that keeps another migration away. opts.Force leaves the comment out; opts may be nil.
// The client must end at the first error: mysql does, sqlite3 with -bail.
//
// Script returns [ErrDialect], [ErrOption], [dialect.ErrPrefix], [ErrVersion], and
// [ErrState] for a state that Goto refuses.
func Script(d dialect.Dialect, from State, version uint, opts *Options) (string, error) {
	set, err := newSettings(d, opts)
	if err != nil {
		return "", err
	}
	if version > latest {
		return "", unknown(version)
	}
	unread := from.Table == ""
	if unread && from.Version > 0 {
		from.Layout = layoutAt(from.Version)
	}
	from.Latest, from.Table, from.Bookkeeping = latest, set.lock.String(), set.bookkeeping.String()
	s := &session{settings: set, script: newScript(from)}
	if err := from.sound(version); err != nil {
		return "", fmt.Errorf("script for %v: %w", set.lock, err)
	}
	if from.begin(version) == version {
		return "", nil
	}
	if unread && from.Layout == 0 && version > spring6 {
		s.script.warn(version) // there may be a table that nobody has asked about
	}
	if err := s.locked(context.Background(), func() error { return s.migrate(context.Background(), from, version) }); err != nil {
		return "", fmt.Errorf("script for %v: %w", set.lock, err)
	}
	return s.script.text.String(), nil
}

// layoutAt returns the layout of the table of a version from 1 on.
func layoutAt(version uint) dialect.Layout {
	if version > spring6 {
		return dialect.Spring7
	}
	return dialect.Spring6
}

// A script takes statements, for tables in a state.
type script struct {
	columns []column // those of the lock table on which conditions in files depend, before the first step
	text    strings.Builder
}

func newScript(from State) *script {
	s := new(script)
	if from.Layout == dialect.Spring7 {
		s.columns = append(s.columns, column{name: expiredAfter, mayBeNull: from.Nullable})
	}
	if from.Interrupted {
		s.columns = append(s.columns, column{name: leaseEnd})
	}
	return s
}

func (s *script) add(statement string) { s.text.WriteString(statement + ";\n") }

// explain adds the comments before a statement.
func (s *script) explain(part string) {
	s.text.WriteString("\n")
	for _, line := range comment.FindAllString(part, -1) {
		s.text.WriteString(line)
	}
}

// warn adds what refuseHeld would have checked.
func (s *script) warn(target uint) {
	warning := "This drops all locks. First stop all programs that use the table."
	if target > 0 {
		warning = "First stop all programs that use the table, and wait for the time-to-live of those that crashed."
	}
	s.text.WriteString("\n-- " + warning + "\n")
}
