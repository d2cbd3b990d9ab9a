package top

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/program"
	"github.com/sqllock/sqllock/internal/test/virtual"
)

// A session is a terminal in which top runs.
type session struct {
	*testing.T
	user    *os.File
	program terminal
	seen    string
	ended   chan error
}

// start starts top in a terminal, and waits for its first screen.
func start(t *testing.T, locks table) *session {
	t.Helper()
	s := &session{T: t, ended: make(chan error, 1)}
	user, program, err := program.Terminal()
	check.Must(t, err)
	check.Must(t, unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 20}))
	s.user, s.program = user, terminal{program, program}
	go func() {
		s.ended <- s.program.watch(t.Context(), locks, options{interval: minInterval, sort: string(listing.Oldest)})
	}()
	s.see(ansi.SetModeAltScreenSaveCursor)
	s.see("held, ")
	return s
}

// see waits until the screen has shown text.
func (s *session) see(text string) {
	s.Helper()
	buffer := make([]byte, 4096)
	for !strings.Contains(s.seen, text) {
		n, err := s.user.Read(buffer)
		if err != nil {
			s.Fatalf("waited for %q: %v, after %q", text, err, s.seen)
		}
		s.seen += string(buffer[:n])
	}
	_, s.seen, _ = strings.Cut(s.seen, text)
}

func (s *session) press(keys string) {
	s.Helper()
	check.Must(s.T, check.ErrorOf(s.user.WriteString(keys)))
}

// isRaw reports whether the terminal passes on each key as it is typed.
func (s *session) isRaw() bool {
	s.Helper()
	settings := check.Value(unix.IoctlGetTermios(int(s.program.in.Fd()), unix.TCGETS))(s.T)
	return settings.Lflag&unix.ICANON == 0
}

// end expects that top has left the terminal as it was, and returns its error.
func (s *session) end() error {
	s.Helper()
	s.see(ansi.ResetModeAltScreenSaveCursor)
	err := <-s.ended
	if s.isRaw() {
		s.Error("the terminal is left in raw mode")
	}
	_ = s.user.Close()
	_ = s.program.in.Close()
	return err
}

// TestTerminal looks at the locks in a terminal, and at one of them alone, which it unlocks, and quits. The leases last for
// an hour, and it waits for what happens.
func TestTerminal(t *testing.T) {
	t.Parallel()
	db := virtual.Migrated(t, dialect.Spring7)
	r := check.Value(sqllock.NewRepository(t.Context(), db.DB.DB, dialect.SQLite(), &sqllock.RepositoryOptions{Keys: sqllock.PlainKeys}))(t)
	for _, k := range []string{"orders/42", "orders/43"} {
		check.Must(t, check.ErrorOf(r.Acquire(t.Context(), k, r.NewHolder(), time.Hour)))
	}
	s := start(t, repository{rows: r, limit: 10})
	if !s.isRaw() {
		t.Error("keys are not passed on")
	}
	s.press("/orders/43\r\r") // the number alone may be in a holder, too
	s.see("CLIENT_ID")
	s.press("\x1b") // Esc, unless a letter follows at once
	s.see("HOLDER")
	s.press("uyes\r")
	var rows []sqllock.Row
	for len(rows) != 1 {
		rows = check.Value(r.List(t.Context()))(t)
	}
	s.press("q")
	check.Must(t, s.end())
	if rows[0].LockKey != "orders/42" {
		t.Errorf("%+v", rows)
	}
}

// TestSignalsRestoreTheTerminal ends top by signals that would end the process at once. That of
// interrupts is of the whole command.
func TestSignalsRestoreTheTerminal(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGQUIT} { // not parallel: a signal is for the whole process
		running := start(t, &fakeTable{next: someLocks()})
		check.Must(t, syscall.Kill(os.Getpid(), s))
		check.Must(t, running.end())
	}
}
