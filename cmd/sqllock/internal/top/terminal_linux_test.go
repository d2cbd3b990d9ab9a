package top

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/test/virtual"
)

// pseudo returns a terminal of 100 columns and 20 lines, and the other end of it.
func pseudo(t *testing.T) (user *os.File, program terminal) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	must(t, err)
	must(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	must(t, unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 20}))
	file, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	program, ok := openTerminal(file, file)
	if !ok {
		t.Fatal("it is no terminal")
	}
	return user, program
}

// A session is a terminal in which top runs.
type session struct {
	*testing.T
	user    *os.File
	program terminal
	seen    string
	ended   chan error
}

// start starts top in a terminal, over a table of two locks.
func start(t *testing.T) (s *session, r *sqllock.Repository) {
	t.Helper()
	db := virtual.Migrated(t, dialect.Spring7)
	r, err := sqllock.NewRepository(t.Context(), db.DB.DB, dialect.SQLite(), &sqllock.RepositoryOptions{Keys: sqllock.PlainKeys})
	must(t, err)
	for _, k := range []string{"orders/42", "orders/43"} {
		_, err := r.Acquire(t.Context(), k, r.NewHolder(), time.Hour)
		must(t, err)
	}
	return watched(t, r), r
}

// watched starts top in a terminal.
func watched(t *testing.T, r *sqllock.Repository) *session {
	t.Helper()
	s := &session{T: t, ended: make(chan error, 1)}
	s.user, s.program = pseudo(t)
	go func() {
		s.ended <- s.program.watch(t.Context(), r, options{interval: time.Second, limit: 10, sort: string(listing.Oldest)})
	}()
	s.see(enterScreen)
	return s
}

// see waits until the screen has shown text, and returns what came before it.
func (s *session) see(text string) (before string) {
	s.Helper()
	buffer := make([]byte, 4096)
	for !strings.Contains(s.seen, text) {
		n, err := s.user.Read(buffer)
		if err != nil {
			s.Fatalf("waited for %q: %v, after %q", text, err, s.seen)
		}
		s.seen += string(buffer[:n])
	}
	before, s.seen, _ = strings.Cut(s.seen, text)
	return before
}

// frame returns the next whole screen.
func (s *session) frame() []string {
	s.Helper()
	s.see(toTop)
	return strings.Split(s.see(eraseBelow), "\r\n")
}

func (s *session) press(keys string) {
	s.Helper()
	_, err := s.user.WriteString(keys)
	must(s.T, err)
}

// isRaw reports whether the terminal passes on each key as it is typed.
func (s *session) isRaw() bool {
	s.Helper()
	settings, err := unix.IoctlGetTermios(int(s.program.in.Fd()), unix.TCGETS)
	must(s.T, err)
	return settings.Lflag&unix.ICANON == 0
}

// end expects that top has left the terminal as it was.
func (s *session) end() {
	s.Helper()
	s.see(leaveScreen)
	must(s.T, <-s.ended)
	if s.isRaw() {
		s.Error("the terminal is left in raw mode")
	}
	must(s.T, s.user.Close()) // ends the goroutine that reads keys
	_ = s.program.in.Close()
}

// TestTerminal looks at the locks in a terminal, unlocks one of them and quits. The leases last for
// an hour, and it waits for what the screen shows.
func TestTerminal(t *testing.T) {
	t.Parallel()
	s, r := start(t)
	if !s.isRaw() {
		t.Error("keys are not passed on")
	}
	s.see("2 held, 0 expired")
	s.press("/orders/43\r") // the number alone may be in a holder, too
	s.see(`search "orders/43": 1`)
	s.press("uyes\r")
	s.see("removed orders/43")
	s.see("1 held, 0 expired")
	s.press("q")
	s.end()
	if rows, err := r.List(t.Context()); err != nil || len(rows) != 1 || rows[0].LockKey != "orders/42" {
		t.Errorf("%+v, %v", rows, err)
	}
}

// TestSignalsRestoreTheTerminal ends top by signals that would end the process at once. That of
// interrupts is of the whole command.
func TestSignalsRestoreTheTerminal(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGQUIT} { // not parallel: a signal is for the whole process
		running, _ := start(t)
		running.see("2 held, 0 expired")
		must(t, syscall.Kill(os.Getpid(), s))
		running.end()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
