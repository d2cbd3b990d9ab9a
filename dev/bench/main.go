// Bench compares sqllock with other lock libraries on the same servers: see README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sqllock/sqllock/dev/bench/internal/fleet"
	"github.com/sqllock/sqllock/dev/bench/internal/load"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// A command is a subcommand of this program.
type command struct {
	about string
	run   func(ctx context.Context, arguments []string) error
}

var commands = map[string]command{
	"run":            {"measure everything, into a file of raw data (-out)", runFull},
	"smoke":          {"see whether everything works, in a minute", runSmoke},
	"contention":     {"have processes compete, and see how long their callers wait, into a file (-out)", runContention},
	"report":         {"make tables and plots from raw data, in a document (-in, -doc)", runReport},
	"fleet":          {"see what many processes, leases, rows and waiters cost a server", fleet.Run},
	load.PlayCommand: {"be a process of a load; for this program itself", runPlay},
}

var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := os.Setenv(server.InstallVariable, "yes"); err != nil { // missing servers, as root
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) > 0 {
		if c, ok := commands[arguments[0]]; ok {
			return c.run(ctx, arguments[1:])
		}
	}
	for _, name := range []string{"run", "contention", "smoke", "report", "fleet"} {
		fmt.Fprintf(os.Stderr, "  go run . %s\t%s\n", name, commands[name].about)
	}
	return errUsage
}

func runPlay(ctx context.Context, arguments []string) error {
	if len(arguments) != 1 {
		return errUsage
	}
	return load.Play(ctx, arguments[0])
}

// flags returns the flag set of a command. Invalid flags end the program.
func flags(name string) *flag.FlagSet { return flag.NewFlagSet(name, flag.ExitOnError) }
