package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// endOnSignals ends the context of a command when a signal asks the process to end, so that the command
// can clean up. exec, lead and acquire handle signals themselves.
func endOnSignals(cmd *cobra.Command) {
	if holdsALock(cmd) {
		return
	}
	ctx, interrupt := context.WithCancelCause(cmd.Context())
	cmd.SetContext(ctx)
	signals := make(chan os.Signal, 1)
	process.NotifyForwarded(signals)
	go func() {
		select {
		case s := <-signals:
			process.LetNextKill(signals)
			interrupt(interrupted{s})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
}

// holdsALock reports whether a command waits for a lock, and holds it.
func holdsALock(cmd *cobra.Command) bool { return runsCommand(cmd) || cmd.Name() == "acquire" }

// interrupted is the cause with which a signal ends the context of a command. It is a
// context.Canceled, so the library's errors contain it instead of that.
type interrupted struct{ signal os.Signal }

func (interrupted) Error() string        { return "interrupted" }
func (interrupted) Is(target error) bool { return target == context.Canceled }

// withInterrupt makes the error of a command that a signal has ended one with the code of the signal: it is no error of the
// database, whatever was under way. Of errors that were joined it leaves out the one that the signal is the cause of.
func withInterrupt(cmd *cobra.Command, err error) error {
	var by interrupted
	if ctx := cmd.Context(); err == nil || ctx == nil || !errors.As(context.Cause(ctx), &by) { // there is none if no command was found
		return err
	}
	texts := []error{by}
	for _, one := range joined(err) {
		if !errors.Is(one, context.Canceled) && exit.HasText(one) {
			texts = append(texts, one)
		}
	}
	number, _ := by.signal.(syscall.Signal)
	return &exit.Error{Code: 128 + int(number), Err: errors.Join(texts...)}
}

// joined returns the errors that errors.Join has made one of, or err alone: one of fmt.Errorf has parts, too.
func joined(err error) []error {
	if of, ok := err.(interface{ Unwrap() []error }); ok {
		if parts := of.Unwrap(); errors.Join(parts...).Error() == err.Error() {
			return parts
		}
	}
	return []error{err}
}
