package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sqllock/sqllock/internal/test/durations"
)

// commands is a flag that can occur several times. Its values are split at blanks.
type commands [][]string

func (c *commands) String() string { return "" }

func (c *commands) Set(value string) error {
	fields := strings.Fields(value)
	if len(fields) == 0 {
		return errors.New("no command")
	}
	*c = append(*c, fields)
	return nil
}

// A process is a command of this run. Each has signals of its own, since all receive all.
type process struct {
	arguments []string
	input     *os.File
	signals   chan os.Signal
}

// prepare returns the processes for the commands. From now on signals wait for them, so none is
// lost before they start. Only the first command can read the standard input.
func prepare(all commands) []process {
	var processes []process
	for i, arguments := range all {
		p := process{arguments: arguments, signals: make(chan os.Signal, 16)}
		if i == 0 {
			p.input = os.Stdin
		}
		signal.Notify(p.signals, forwarded...)
		processes = append(processes, p)
	}
	return processes
}

// runAll runs the processes concurrently. It returns the exit code of the first one that has
// failed, in the order of the processes, and the printers of those that run tests.
func runAll(processes []process, environment []string) (int, []*durations.Printer) {
	codes := make([]int, len(processes))
	output := &shared{to: os.Stdout}
	var printers []*durations.Printer
	var all sync.WaitGroup
	for i, p := range processes {
		arguments, printer := withDurations(p.arguments, output)
		if printer != nil {
			printers = append(printers, printer)
		}
		all.Go(func() { codes[i] = p.run(arguments, environment, printer) })
	}
	all.Wait()
	for _, code := range codes {
		if code != 0 {
			return code, printers
		}
	}
	return 0, printers
}

// shared is a writer for several goroutines.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(p)
}

// run runs the command, forwards signals to it, and returns its exit code, or 128 plus the
// signal's number if a signal has ended it.
//
// The command receives a Ctrl-C twice, from the terminal and from here, since it cannot be
// distinguished from a signal to this process alone.
func (p process) run(arguments, environment []string, printer *durations.Printer) int {
	// The kernel treats the death of the starting thread as that of the parent.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	//nolint:noctx // a context can only kill; signals are forwarded instead
	cmd := exec.Command(arguments[0], arguments[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.input, os.Stdout, os.Stderr
	if printer != nil {
		cmd.Stdout = printer
		cmd.WaitDelay = 10 * time.Second // a process that a test has left can have the output open
		defer printer.Close()            //nolint:errcheck // the terminal is gone
	}
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		say("%v", err)
		return exitNotFound
	}
	done := make(chan struct{})
	go forward(p.signals, cmd.Process, done)
	err := cmd.Wait()
	signal.Stop(p.signals)
	close(done)
	return exitCode(err)
}

func forward(signals <-chan os.Signal, to *os.Process, done <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			_ = to.Signal(s) // the command may have ended meanwhile
		case <-done:
			return
		}
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		say("%v", err)
		return exitFailure
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
