package exec

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/args"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/leasefile"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/engine"
)

//go:embed acquire.txt
var acquireHelp string

// An acquisition is one run of acquire: an execution whose command comes later.
type acquisition struct {
	*execution

	path       string
	renewWhile process.Identity // if its PID is not 0
}

// Acquire returns the subcommand acquire. It handles signals itself.
func Acquire(flags *connect.Flags) *cobra.Command {
	x := &execution{flags: flags, began: time.Now(), noRenew: true, command: []string{"sqllock acquire"}}
	a := &acquisition{execution: x}
	wait := &waitFlags{}
	cmd := &cobra.Command{
		Use:   "acquire [flags] KEY",
		Short: "Acquire a lock for the later steps of a pipeline",
		Long:  acquireHelp,
		Example: `  lease=$(mktemp -u)
  sqllock acquire deploy --wait 10m --ttl 30m --file "$lease" || exit
  sqllock acquire nightly -n --renew-while $$ --file "$lease" || exit`,
		Args:              args.Exactly("KEY"),
		ValidArgsFunction: complete.Keys(flags),
		RunE: func(cmd *cobra.Command, given []string) error {
			x.key = given[0]
			x.stdin, x.stdout, x.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			x.ttlGiven = cmd.Flags().Changed("ttl")
			if err := x.use(wait, cmd); err != nil {
				return err
			}
			if err := a.check(cmd); err != nil {
				return err
			}
			x.remember()
			return a.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&a.path, "file", "f", "", "the `FILE` that is written; - is the standard output")
	f.IntVar(&a.renewWhile.PID, "renew-while", 0, "renew the lease in the background while the process `PID` lives, as $$ of a shell")
	x.addKinds(cmd)
	wait.add(x, f)
	f.DurationVar(&x.ttl, "ttl", defaultTTL, "time-to-live: how long the lock stays taken unless it is extended or released; needed without --renew-while")
	f.DurationVar(&x.minHold, "min-hold", 0, minHoldHelp+"release comes sooner")
	f.StringVar(&x.clientID, "client-id", "", clientIDHelp)
	flags.AddNoFencing(f)
	f.BoolVar(&x.noNames, "no-names", false, noNamesHelp)
	f.BoolVarP(&x.verbose, "verbose", "v", false, "print the current holder, and when the lock is acquired")
	return cmd
}

func (a *acquisition) check(cmd *cobra.Command) error {
	switch {
	case a.path == "":
		return exit.WithHint(exit.Usagef("--file is missing: release needs what it has"), "%s --file lease %s", cmd.CommandPath(), args.Key(a.key))
	case !a.ttlGiven && !cmd.Flags().Changed("renew-while"):
		return exit.WithHint(exit.Usagef("nothing renews the lease: --ttl must say how long the next step may take"), "--ttl 30m; or, in a script, --renew-while $$")
	}
	if err := a.execution.check(); err != nil {
		return err
	}
	if err := a.checkWanted(cmd.Flags().Changed); err != nil {
		return err
	}
	if err := a.flags.CheckChosen(); err != nil {
		return err
	}
	if !cmd.Flags().Changed("renew-while") {
		return nil
	}
	pid := a.renewWhile.PID
	var err error
	if a.renewWhile, err = process.Identify(pid); err != nil {
		return exit.Usagef("--renew-while %d: %w", pid, err)
	}
	return nil
}

// errPipelineEnded is the cause with which the end of the process of --renew-while ends the wait: no later step could
// release the lock.
var errPipelineEnded = errors.New("the process of --renew-while has ended")

func (a *acquisition) run(ctx context.Context) error {
	draft, err := leasefile.NewDraft(ctx, a.path, a.stdout, a.flags)
	if err != nil {
		return err
	}
	defer a.printer.flush()
	process.CatchBrokenPipes() // else a token that cannot be printed would leave the file and the lock
	a.beforeLock = a.warnOfLayout
	signals := make(chan os.Signal, 16)
	process.NotifyForwarded(signals)
	defer signal.Stop(signals)
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	if a.renewWhile.PID != 0 {
		go a.watch(ctx, interrupt)
	}
	h, err := a.acquireUnlessSignalled(ctx, interrupt, signals)
	if errors.Is(err, errPipelineEnded) {
		return err
	}
	if err != nil {
		return a.explain(err)
	}
	a.printer.flush() // the token comes after what was said of the wait
	if err := a.leave(ctx, h, draft, signals); err != nil {
		a.releaseAtOnce(h) //nolint:contextcheck // the lease has the context
		h.close(ctx)
		return err
	}
	h.connection.Close() // the registry would delete the row
	return nil
}

// warnOfLayout warns of rivals that take the lock over before its time-to-live.
func (a *acquisition) warnOfLayout(r *sqllock.Repository) {
	if r.Layout() == dialect.Spring6 && a.ttl > sqllock.DefaultTTL {
		a.printf("the table has no EXPIRED_AFTER: a program that judges its rows by less than --ttl %s takes the lock over; Spring judges by %s",
			format.Duration(a.ttl), format.Duration(sqllock.DefaultTTL))
	}
}

// watch ends the wait when the process of --renew-while has ended.
func (a *acquisition) watch(ctx context.Context, interrupt context.CancelCauseFunc) {
	for a.renewWhile.Lives() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
	interrupt(errPipelineEnded)
}

// startRenewer starts the renewer of a file, which takes time while the database is slow, unless a signal comes first.
func (a *acquisition) startRenewer(ctx context.Context, file *leasefile.File, signals chan os.Signal) (*leasefile.Renewer, error) {
	ctx, interrupt := context.WithCancel(ctx)
	var by *signalled // the context's cause would be the first of a signal and the end
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case s := <-signals:
			process.LetNextKill(signals)
			number, _ := s.(syscall.Signal)
			by = &signalled{number}
			interrupt()
		case <-ctx.Done():
		}
	}()
	renewer, err := leasefile.StartRenewer(ctx, file, a.renewWhile, a.flags)
	interrupt()
	<-watched
	if by == nil {
		return renewer, err
	}
	if err == nil { // both at once
		renewer.EndUnlessKept()
	}
	return nil, a.explain(*by)
}

// leave hands the lease over to those who read the file. If it returns an error, there is no file and no renewer.
func (a *acquisition) leave(ctx context.Context, h *holding, draft *leasefile.Draft, signals chan os.Signal) (err error) {
	file, end := leasefile.New(a.name(), h.lease, a.ttl, a.minHold, h.connection, a.flags), h.lease.Deadline()
	engine.LocksOf(h.registry).LeaveNamed(ctx)
	var renewer *leasefile.Renewer
	if a.renewWhile.PID != 0 {
		end = time.Now().Add(a.ttl)
		if renewer, err = a.startRenewer(ctx, file, signals); err != nil {
			return err
		}
		defer renewer.EndUnlessKept()
	}
	select {
	case s := <-signals:
		number, _ := s.(syscall.Signal)
		return a.explain(signalled{number})
	default:
	}
	if late := time.Since(end); late >= 0 {
		return exit.WithHint(fmt.Errorf("%w: the lease of %q ended %s ago, before its file was written", sqllock.ErrLockLost, a.name(), format.Duration(late)), "a longer --ttl")
	}
	if err := draft.Write(ctx, file); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			draft.Remove()
		}
	}()
	if a.path != "-" && file.Token > 0 {
		if _, err := fmt.Fprintln(a.stdout, file.Token); err != nil {
			return err
		}
	}
	return renewer.Keep()
}
