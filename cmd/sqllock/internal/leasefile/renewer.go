package leasefile

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/internal/bounded"
)

// A renewer is a process of this program in the background. It renews the lease of a file while another process lives. When
// that has ended, it ends without releasing: descendants of that process may still be at work, for which the rest of the
// time-to-live is left. It has no terminal, and no file of the process that starts it but two pipes: what inherits the files
// of a script, such as a lock of flock(1), keeps them open after it.
//
// On its standard input it reads the file, and later, when acquire has written that, one more line. Without that it ends: the
// lease has no holder.
type renewer struct {
	file   *File
	while  process.Identity
	stdout io.Writer
}

const (
	renewerName = "renew-in-background" // of the subcommand
	saidReady   = "ready"
	saidKeep    = "keep"
	// readyTimeout limits the start of a renewer, which connects and renews.
	readyTimeout = 20 * time.Second
	// lookEvery is the pause between two looks at the process.
	lookEvery = time.Second
	// leastTry is the least time limit of a renewal, whatever the time-to-live is.
	leastTry = time.Second
)

// RenewerCommand returns the hidden subcommand of a renewer, which reads the file from the standard input.
func RenewerCommand(flags *connect.Flags) *cobra.Command {
	var r renewer
	cmd := &cobra.Command{
		Use:    renewerName,
		Short:  "Renew a lease in the background: acquire --renew-while starts it",
		Hidden: true,
		Args:   args.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			process.CloseInherited()
			signal.Ignore(syscall.SIGPIPE) // drivers write to stderr, which has no reader any more
			r.stdout = cmd.OutOrStdout()
			stdin := bufio.NewReader(cmd.InOrStdin())
			line, err := stdin.ReadString('\n')
			if err != nil {
				return err
			}
			if r.file, err = read("-", strings.NewReader(line)); err != nil {
				return err
			}
			return r.file.with(cmd.Context(), flags, func(h held) error { return r.run(cmd.Context(), h, stdin) })
		},
	}
	cmd.Flags().IntVar(&r.while.PID, "pid", 0, "the process while which the lease is renewed")
	cmd.Flags().StringVar(&r.while.Started, "started", "", "when it was started")
	return cmd
}

// A Renewer is a renewer for the process that has started it.
type Renewer struct {
	cmd    *exec.Cmd
	stdin  *os.File
	output *os.File
	kept   bool
}

// StartRenewer starts a renewer of a file, and returns when it has renewed the lease. Its error has the exit code of the
// renewer. EndUnlessKept must be called.
func StartRenewer(ctx context.Context, f *File, while process.Identity, flags *connect.Flags) (*Renewer, error) {
	program, err := process.Executable()
	if err != nil {
		return nil, err
	}
	r := &Renewer{}
	cmd := exec.Command(program, renewerName, "--pid", strconv.Itoa(while.PID), "--started", while.Started, //nolint:noctx // it outlives this process
		"--local="+strconv.FormatBool(flags.Local), "--unverified="+strconv.FormatBool(flags.Unverified))
	cmd.Args[0] = "sqllock"
	if flags.DSN != "" { // not an argument, which other users can see
		cmd.Env = append(os.Environ(), connect.DSNVariable+"="+flags.DSN)
	}
	if err := r.start(cmd); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%w: the renewer is not ready after %s", sqllock.ErrDatabase, format.Duration(readyTimeout)))
	defer cancel()
	said, err := bounded.Do(ctx, 0, func() (string, error) { return r.introduce(f) }, nil)
	switch {
	case errors.Is(err, bounded.ErrNoAnswer):
		r.EndUnlessKept()
		return nil, err
	case said != saidReady:
		return nil, r.failure(said)
	default:
		return r, nil
	}
}

// start starts the process, with a pipe to it and one from it.
func (r *Renewer) start(cmd *exec.Cmd) error {
	theirInput, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = theirInput.Close() }()
	output, theirOutput, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close())
	}
	defer func() { _ = theirOutput.Close() }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = theirInput, theirOutput, theirOutput, process.InBackground()
	if err := cmd.Start(); err != nil {
		return errors.Join(err, stdin.Close(), output.Close())
	}
	r.cmd, r.stdin, r.output = cmd, stdin, output
	return nil
}

// introduce gives the renewer the file, and returns the first line that it says.
func (r *Renewer) introduce(f *File) (string, error) {
	if err := format.JSONLine(r.stdin, f); err != nil && !errors.Is(err, syscall.EPIPE) { // then it says why it has ended
		return "", err
	}
	line, err := bufio.NewReader(r.output).ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// failure returns the error with which the renewer has ended.
func (r *Renewer) failure(said string) error {
	defer r.close()
	_ = r.cmd.Wait()
	if code := r.cmd.ProcessState.ExitCode(); code > 0 && said != "" {
		return &exit.Error{Code: code, Err: errors.New(strings.TrimPrefix(said, "sqllock: "))}
	}
	return fmt.Errorf("the process that renews the lease has ended: %s", r.cmd.ProcessState)
}

// Keep lets the renewer go on after this process. It does nothing if there is none.
func (r *Renewer) Keep() error {
	if r == nil {
		return nil
	}
	if _, err := fmt.Fprintln(r.stdin, saidKeep); err != nil {
		return fmt.Errorf("the process that renews the lease has ended: %w", err)
	}
	r.kept = true
	return nil
}

// EndUnlessKept ends the renewer, unless it is kept.
func (r *Renewer) EndUnlessKept() {
	if !r.kept {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
	}
	r.close()
}

func (r *Renewer) close() { _, _ = r.stdin.Close(), r.output.Close() }

// run renews the lease until it is lost or released, or the process has ended. An error that comes later than the first
// renewal ends nothing: the database decides what has expired.
func (r *renewer) run(ctx context.Context, h held, stdin *bufio.Reader) error {
	renewed := time.Now()
	switch err := r.renew(ctx, h); {
	case errors.Is(err, errOver):
		return cmp.Or(h.loss(ctx), h.lost("its row has changed meanwhile"))
	case err != nil:
		return err
	}
	if _, err := fmt.Fprintln(r.stdout, saidReady); err != nil {
		return err
	}
	if said, err := stdin.ReadString('\n'); err != nil || said != saidKeep+"\n" {
		return errors.New("the file was not written")
	}
	for next := renewed.Add(r.file.ttl() / 3); r.sleep(ctx, next); {
		renewed := time.Now()
		err := r.renew(ctx, h)
		switch {
		case errors.Is(err, errOver):
			return nil
		case err != nil:
			next = time.Now().Add(min(r.file.ttl()/12, lookEvery))
		default:
			next = renewed.Add(r.file.ttl() / 3)
		}
	}
	return nil
}

// errOver is that a lease is not held any more: it was released, or is lost.
var errOver = errors.New("the lease is not held any more")

func (r *renewer) renew(ctx context.Context, h held) error {
	ctx, cancel := context.WithTimeout(ctx, max(r.file.ttl()/4, leastTry))
	defer cancel()
	renewed, err := h.extend(ctx, r.file.ttl())
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", sqllock.ErrDatabase, err)
	case err == nil && !renewed:
		return errOver
	default:
		return err
	}
}

// sleep returns false before that time if the process or ctx has ended.
func (r *renewer) sleep(ctx context.Context, until time.Time) bool {
	for r.while.Lives() {
		left := time.Until(until)
		if left <= 0 {
			return true
		}
		if !bounded.Sleep(ctx, min(left, lookEvery)) {
			return false
		}
	}
	return false
}
