// Withservers runs a command with database servers for its tests:
//
//	go run ./internal/test/dbtest/cmd/withservers -- go test ./...
//
// It starts servers, passes their DSNs to the command in environment variables, stops them when
// the command has ended, and exits with the command's exit code:
//
//	postgres          SQLLOCK_TEST_POSTGRES          PostgreSQL, Debian's
//	pgbouncer         SQLLOCK_TEST_PGBOUNCER         PgBouncer in front of that
//	pgbouncer-newest  SQLLOCK_TEST_PGBOUNCER_NEWEST  the newest PgBouncer, with SQLLOCK_TEST_ALL=1 alone
//	pgpool            SQLLOCK_TEST_PGPOOL            Pgpool-II, in front of two servers of its own
//	postgres-newest   SQLLOCK_TEST_POSTGRES_NEWEST   PostgreSQL's newest major version
//	postgres-beta     SQLLOCK_TEST_POSTGRES_BETA     a beta of PostgreSQL, with SQLLOCK_TEST_ALL=1 alone
//	mysql             SQLLOCK_TEST_MYSQL             MariaDB, Debian's
//	mariadb-newest    SQLLOCK_TEST_MARIADB_NEWEST    MariaDB's newest long-term series
//	oracle-mysql      SQLLOCK_TEST_ORACLE_MYSQL      Oracle's MySQL
//	tidb              SQLLOCK_TEST_TIDB              TiDB, with SQLLOCK_TEST_ALL=1 alone
//
// The variables hold URLs for PostgreSQL and PgBouncer, and DSNs of go-sql-driver/mysql for the
// others. A server whose variable is set already is not started. If possible, missing programs
// are installed, or downloaded into the user's cache; SQLLOCK_MAY_INSTALL=yes tells the command
// that it may do so too, for tests that start servers of their own. SQLLOCK_SERVERS=postgres,mysql starts
// only these servers, for a quick local run.
//
// The data of the servers and of SQLite are kept in memory if there is enough of it, or in
// SQLLOCK_SCRATCH=/some/directory.
//
// If a server cannot be started, the command runs without it, and a message is printed before
// and after it. If SQLLOCK_REQUIRE=postgres,oracle-mysql contains the server, the command does
// not run, and the exit code is 1. CI=true without SQLLOCK_REQUIRE requires postgres,
// pgbouncer, pgpool and mysql, with SQLLOCK_TEST_ALL=1 also pgbouncer-newest,
// postgres-newest, mariadb-newest and oracle-mysql.
//
// The lines that tests write to the file of SQLLOCK_TEST_REPORT are printed in order at the
// end, unless that variable was set before.
//
// A flag before the command, which can occur several times, has a command without quotes:
//
//	-then 'go -C dev/reliability test .'   runs after the command, even if that has failed
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// Exit codes of this program, as shells use them.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 127
	exitInterrupted = 130
)

func main() {
	// For this program and its command. Tests of run install nothing.
	if err := os.Setenv(server.InstallVariable, "yes"); err != nil {
		say("%v", err)
		os.Exit(exitFailure)
	}
	os.Exit(run(os.Args[1:]))
}

func run(arguments []string) int {
	var then commands
	flags := flag.NewFlagSet("withservers", flag.ContinueOnError)
	flags.Usage = func() {
		say("usage: withservers [-then COMMAND] -- COMMAND [ARGUMENT...]")
	}
	flags.Var(&then, "then", "")
	if err := flags.Parse(arguments); err != nil {
		return exitUsage
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return exitUsage
	}
	if err := checkNames(); err != nil {
		say("%v", err)
		return exitUsage
	}
	// Signals that arrive while servers start end the start; later ones are forwarded to the
	// command. All are caught from the beginning, so none is lost in between.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	ctx, cancel := signal.NotifyContext(context.Background(), forwarded...)
	defer cancel()

	servers, err := startServers(ctx)
	defer servers.stop()
	if ctx.Err() != nil {
		return exitInterrupted
	}
	if err != nil {
		say("%v", err)
		return exitFailure
	}
	servers.boxMissing()
	defer servers.boxMissing()
	environment := servers.environment()
	if os.Getenv(server.ReportVariable) == "" { // else the caller collects the lines
		lines := filepath.Join(servers.scratch.Dir, "report")
		defer printReport(lines)
		environment = append(environment, server.ReportVariable+"="+lines)
	}
	return runAll(ctx, append(commands{flags.Args()}, then...), environment, signals)
}

// printReport prints to the standard error, since the standard output belongs to the command. Each line stands
// there once, and there may be none.
func printReport(path string) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		say("report: %v", err)
	}
	for _, line := range slices.Compact(slices.Sorted(strings.Lines(string(text)))) {
		fmt.Fprint(os.Stderr, line)
	}
}

// checkNames returns an error for unknown names of servers, before any server is started.
func checkNames() error {
	_, wanted := server.Wanted(server.SQLite)
	_, required := server.Required(server.SQLite)
	return errors.Join(wanted, required)
}

// forwarded are the signals that end a run early.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

func say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "withservers: "+format+"\n", values...)
}
