// Package exec has the subcommands exec and lead: they run a command under a lock, and end
// it if the lock is lost. lead is exec under an elector, which acquires the lock again and
// again. What is said of exec below is true of lead.
//
// # The processes
//
// exec starts two processes of its own program. The gate waits until the watchdog is
// ready, and then becomes the command by execve. The watchdog waits until exec has
// ended. If exec was killed, so that nothing renews the lease any more, it kills the
// command and all of its descendants. It knows when the lease ends, and ends them then if exec,
// which is stopped, does not. If exec ends by itself, it kills the watchdog first.
//
// # The goroutines
//
//   - run acquires the lock, and supervises the command: it forwards signals, and ends
//     the command when the context of the lease ends.
//   - A keeper keeps a watchdog running, and starts another if it is killed. It tells the watchdog
//     of each renewal.
//   - Each child has a goroutine that waits for its end, on a thread of its own.
//   - A printer prints the messages: no other goroutine waits for who reads them.
package exec

import (
	_ "embed"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/complete"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

//go:embed exec.txt
var execHelp string

const (
	defaultTTL   = 30 * time.Second // sqllock.DefaultTTL in a table of Spring before 7
	defaultGrace = 5 * time.Second
)

// Command returns the subcommand. It handles signals itself.
func Command(flags *connect.Flags) *cobra.Command {
	x := &execution{flags: flags, began: time.Now(), suspend: process.StopSelf, recorded: true}
	wait := &waitFlags{}
	cmd := &cobra.Command{
		Use:   "exec [flags] KEY [--] CMD ARGS…",
		Short: "Run a command under a lock, or several",
		Long:  execHelp,
		Example: `  sqllock exec nightly-report -- ./report.sh
  sqllock exec -w 10 deploy make deploy
  sqllock exec --nonblock --min-hold 1m cron/cleanup -- ./cleanup.sh
  sqllock exec account/1 --key account/2 -- ./transfer.sh
  sqllock exec --permits 3 render -- ./render.sh
  sqllock exec --shared catalog -- ./export.sh`,
		Args:              nameAndCommand("KEY", "nightly -- ./report.sh"),
		ValidArgsFunction: complete.KeyAndCommand(flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			x.key, x.command = split(cmd, args)
			x.stdin, x.stdout, x.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			x.ttlGiven = cmd.Flags().Changed("ttl")
			if err := x.use(wait, cmd); err != nil {
				return err
			}
			if err := x.check(); err != nil {
				return err
			}
			if err := x.checkWanted(cmd.Flags().Changed); err != nil {
				return err
			}
			if err := flags.CheckChosen(); err != nil {
				return err
			}
			x.remember()
			return x.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	x.addKinds(cmd)
	wait.add(x, f)
	f.DurationVar(&x.ttl, "ttl", defaultTTL, ttlHelp("lock"))
	f.DurationVar(&x.minHold, "min-hold", 0, minHoldHelp+"the command ends sooner")
	f.BoolVar(&x.untilSuccess, "until-success", false, "--min-hold only for a command that ended with 0: any other end frees the lock at once for the next try")
	f.DurationVar(&x.grace, "grace", defaultGrace, "time between SIGTERM and SIGKILL when the lock is lost")
	f.BoolVar(&x.noRenew, "no-renew", false, "do not renew the lease: the command has at most one time-to-live")
	f.StringVar(&x.clientID, "client-id", "", clientIDHelp)
	flags.AddNoFencing(f)
	f.BoolVar(&x.noNames, "no-names", false, noNamesHelp+", nor how the command ended")
	f.BoolVarP(&x.verbose, "verbose", "v", false, "print the current holder, and when the lock is acquired and released")
	return cmd
}

// addKinds adds the flags that say which kind of lock is wanted.
func (x *execution) addKinds(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&x.more, "key", nil, "another `KEY`: the command needs the locks of all keys, and gets all or none (repeatable)")
	f.IntVar(&x.permits, "permits", 0, "how many permits KEY has: at most that many commands run at once")
	f.IntVar(&x.take, "take", 1, "how many of the permits the command takes")
	f.BoolVarP(&x.shared, "shared", "s", false, "acquire the read lock of KEY, which other readers can hold too")
	f.BoolVarP(&x.exclusive, "exclusive", "x", false, "acquire the write lock of KEY, which readers exclude")
	_ = cmd.RegisterFlagCompletionFunc("key", complete.OtherKeys(x.flags))
}

// waitFlags are the flags for the wait whose values do not stand in an execution as they are given.
type waitFlags struct{ nonblock, noOutages bool }

// add adds the flags for the wait.
func (w *waitFlags) add(x *execution, f *pflag.FlagSet) {
	f.DurationVarP(&x.wait, "wait", "w", 0, "how long to wait for the lock, from the start of the program, as 10s or in seconds; 0 means one try (default: forever)")
	f.BoolVarP(&w.nonblock, "nonblock", "n", false, "do not wait: --wait 0")
	f.BoolVar(&w.noOutages, "no-outages", false, "do not wait through an outage: a database that fails during the wait ends it")
	f.IntVarP(&x.conflict, "conflict-exit-code", "E", exit.NotAcquired, "the exit code if the lock was not acquired before the timeout")
}

// use applies the flags for the wait.
func (x *execution) use(w *waitFlags, cmd *cobra.Command) error {
	waitGiven := cmd.Flags().Changed("wait")
	x.waitsThroughOutages, x.waitForever = !w.noOutages, !waitGiven && !w.nonblock
	if waitGiven && w.nonblock {
		return exit.Usagef("--wait and --nonblock exclude each other")
	}
	return nil
}

// ttlHelp describes the flag --ttl.
func ttlHelp(what string) string {
	return "time-to-live: how long the " + what + " stays taken if this process or its host dies; 10s in a table without EXPIRED_AFTER"
}

// minHoldHelp begins the description of the flag --min-hold.
const minHoldHelp = "keep the lock at least this long after it was acquired, even if "

// clientIDHelp describes the flag --client-id.
const clientIDHelp = "the name that tools show for this process, up to 24 letters, digits and any of -_.: ; processes that run at the same time need different ones (default: host name and process ID)"

// noNamesHelp describes the flag --no-names.
const noNamesHelp = "write neither keys nor this process to the table of names, where others could read them"

// check rejects values that make no sense.
func (x *execution) check() error {
	switch {
	case x.wait < 0:
		return exit.Usagef("--wait %v is negative", x.wait)
	case x.ttl < sqllock.MinTTL:
		return exit.Usagef("--ttl %v: it must be at least %v", x.ttl, sqllock.MinTTL)
	case x.minHold < 0:
		return exit.Usagef("--min-hold %v is negative", x.minHold)
	case x.untilSuccess && x.minHold == 0:
		return exit.WithHint(exit.Usagef("--until-success needs --min-hold: how long a success counts"), "--min-hold 12h --until-success")
	case x.grace < 0:
		return exit.Usagef("--grace %v is negative", x.grace)
	case x.conflict < 0 || x.conflict > 255:
		return exit.Usagef("--conflict-exit-code %d: exit codes are 0 to 255", x.conflict)
	}
	return nil
}
