// Withservers runs a command with database servers for its tests:
//
//	go run ./internal/dbtest/cmd/withservers -- go test ./...
//
// It starts a private PostgreSQL and a private MariaDB, tells the command where
// they are in SQLLOCK_TEST_POSTGRES (a URL) and SQLLOCK_TEST_MYSQL (a
// go-sql-driver/mysql DSN), stops them when the command has ended and exits
// with the command's code. A server whose variable is set already is not
// started. Missing programs are installed where that is possible.
//
// When a server cannot be had, the command runs without it after a loud
// message; with CI=true it does not run at all.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes of our own, as shells use them.
const (
	exitTrouble     = 1
	exitUsage       = 2
	exitNotFound    = 127
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Args[1:])) }

func run(arguments []string) int {
	if len(arguments) > 0 && arguments[0] == "--" {
		arguments = arguments[1:]
	}
	if len(arguments) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withservers -- COMMAND [ARGUMENT...]")
		return exitUsage
	}
	// Signals that arrive while servers start end the start; later ones go to
	// the command. Both are caught from the beginning, so that none is lost in
	// between.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	ctx, cancel := signal.NotifyContext(context.Background(), forwarded...)
	defer cancel()

	servers, err := startServers(ctx)
	defer servers.stop()
	if ctx.Err() != nil {
		return exitInterrupted
	}
	if err != nil {
		say("%v", err)
		return exitTrouble
	}
	return runCommand(arguments, servers.environment, signals)
}

// forwarded are the signals by which a run is ended early.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

func say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "withservers: "+format+"\n", values...)
}
