//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// A program is a sqllock that runs in a process of its own, without a terminal.
type program struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdin          io.WriteCloser
	stdout, stderr *stream
}

// start starts the program. Reading from it fails the test in the end instead of
// waiting for ever.
func start(t *testing.T, dsn string, args ...string) *program {
	t.Helper()
	return startProgram(t, dsn, "sqllock", args...)
}

// startProgram is start for another program, which runs sqllock.
func startProgram(t *testing.T, dsn, name string, args ...string) *program {
	t.Helper()
	//nolint:noctx // a test's context ends before its cleanups, which need the process
	p := &program{t: t, cmd: exec.Command(name, args...)}
	p.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "TMPDIR="+t.TempDir(), dsnVariable+"="+dsn)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var toClose [2]*os.File
	p.stdout, toClose[0] = newStream(t)
	p.stderr, toClose[1] = newStream(t)
	p.cmd.Stdout, p.cmd.Stderr = toClose[0], toClose[1]
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range toClose {
		f.Close()
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended, if all is well
		_ = p.cmd.Wait()
	})
	return p
}

func (p *program) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns the exit code, or -1 after a signal.
func (p *program) wait() int {
	p.t.Helper()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *program) wantCode(code int) {
	p.t.Helper()
	if got := p.wait(); got != code {
		p.t.Fatalf("exit code %d, want %d; stderr: %s", got, code, p.stderr.rest())
	}
}

// A stream is the output of a process, and of its children.
type stream struct {
	t     *testing.T
	file  *os.File
	lines *bufio.Scanner
}

func newStream(t *testing.T) (s *stream, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close() })
	if err := read.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &stream{t, read, bufio.NewScanner(read)}, write
}

// await reads until a line contains text.
func (s *stream) await(text string) {
	s.t.Helper()
	for s.lines.Scan() {
		if strings.Contains(s.lines.Text(), text) {
			return
		}
	}
	s.t.Fatalf("no line with %q: %v", text, s.lines.Err())
}

// rest returns what is left, once all who could write have ended.
func (s *stream) rest() string {
	s.t.Helper()
	var lines []string
	for s.lines.Scan() {
		lines = append(lines, s.lines.Text())
	}
	if err := s.lines.Err(); err != nil {
		s.t.Fatalf("somebody still holds the pipe: %v", err)
	}
	return strings.Join(lines, "\n")
}

// migrated creates the tables, and returns their repository.
func migrated(t *testing.T, db *dbtest.DB) *sqllock.Repository {
	t.Helper()
	if err := migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil); err != nil {
		t.Fatal(err)
	}
	r, err := sqllock.NewRepository(db.DB, db.Dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
