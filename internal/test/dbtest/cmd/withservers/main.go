// Withservers runs a command with database servers for its tests:
//
//	go run ./internal/test/dbtest/cmd/withservers -- go test ./...
//
// It starts private servers, tells the command where they are, stops them when
// the command has ended and exits with the command's code:
//
//	postgres         SQLLOCK_TEST_POSTGRES         PostgreSQL, Debian's
//	pgbouncer        SQLLOCK_TEST_PGBOUNCER        PgBouncer in front of that
//	postgres-newest  SQLLOCK_TEST_POSTGRES_NEWEST  PostgreSQL's newest major version
//	mysql            SQLLOCK_TEST_MYSQL            MariaDB, Debian's
//	oracle-mysql     SQLLOCK_TEST_ORACLE_MYSQL     Oracle's MySQL
//
// The variables hold URLs for PostgreSQL and PgBouncer, go-sql-driver/mysql
// DSNs for the others. A server whose variable is set already is not started.
// Missing programs are installed, or fetched into the user's cache, where that
// is possible. SQLLOCK_SERVERS=postgres,mysql starts only these, for a quick
// run at a desk.
//
// Their data, and the files of SQLite, are kept in memory where there is enough of
// it. SQLLOCK_SCRATCH=/some/directory keeps them there.
//
// When a server cannot be had, the command runs without it, between loud
// messages before and after it. When SQLLOCK_REQUIRE=postgres,oracle-mysql names the
// server, the command does not run at all, and the exit code is 1. CI=true
// without SQLLOCK_REQUIRE requires postgres, pgbouncer and mysql.
//
// Cells that tests report in the file of SQLLOCK_TEST_REPORT are shown as a
// table at the end, unless somebody has set that variable before.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
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
	if err := checkNames(); err != nil {
		say("%v", err)
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
	servers.explainMissing()
	servers.boxMissing()
	defer servers.boxMissing()
	results := newCollector(servers.scratch.Dir)
	defer results.print()
	return runCommand(arguments, append(servers.environment(), results.environment()...), signals)
}

// checkNames refuses names of servers that do not exist, before anything is
// started.
func checkNames() error {
	_, wanted := server.Wanted(server.SQLite)
	_, required := server.Required(server.SQLite)
	return errors.Join(wanted, required)
}

// forwarded are the signals by which a run is ended early.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

func say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "withservers: "+format+"\n", values...)
}
