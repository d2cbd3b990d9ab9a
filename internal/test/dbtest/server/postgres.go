package server

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"

	_ "github.com/lib/pq" // the driver for pings
)

// StartPostgres starts the newest PostgreSQL of this machine with its data in dir. If there is
// none, it installs Debian's. If the caller is root, the server runs as the user postgres (or
// "nobody", if there is no such user), who must have access to dir, as in a [Scratch]. The
// caller stops the server before it removes dir.
func StartPostgres(ctx context.Context, dir string) (*Server, error) {
	return startBy(ctx, postgresHere, dir)
}

// postgresHere is the recipe for the PostgreSQL of this machine.
func postgresHere(ctx context.Context) (Recipe, error) {
	bin, err := EnsurePostgres(ctx)
	if err != nil {
		return Recipe{}, fmt.Errorf("find PostgreSQL: %w", err)
	}
	return postgres(bin), nil
}

// EnsurePostgres returns the directory of the programs of this machine's newest PostgreSQL, and
// installs Debian's if there is none.
func EnsurePostgres(ctx context.Context) (bin string, err error) {
	return ensure(ctx, newestPostgres, "postgresql")
}

// newestPostgres returns the directory of the programs of the highest major version that is
// installed from Debian's packages.
func newestPostgres() (string, bool) {
	programs, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is valid
	newest, highest := "", -1
	for _, program := range programs {
		bin := filepath.Dir(program)
		if major, err := strconv.Atoi(filepath.Base(filepath.Dir(bin))); err == nil && major > highest {
			newest, highest = bin, major
		}
	}
	return newest, newest != ""
}

// postgres is the recipe for the PostgreSQL whose programs are in bin.
func postgres(bin string) Recipe {
	return Recipe{
		Name:         Postgres,
		Driver:       "postgres",
		Unprivileged: true,
		Create: func(dir string) []string {
			return []string{
				filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres",
				"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions",
			}
		},
		Serve: func(dir string, port int) []string {
			return append([]string{filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data")}, settings(
				"listen_addresses=127.0.0.1",
				"port="+strconv.Itoa(port),
				"unix_socket_directories=", // their paths may be too long, and they are not needed
				"max_connections=1500",     // each cell of the contract has a pool of its own, and so has PgBouncer for it
				"shared_buffers=64MB",
				"fsync=off",
				"synchronous_commit=off",
				"full_page_writes=off",
				"log_line_prefix=%m [%p] %d %a ",
			)...)
		},
		DSN: func(port int) string {
			return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
		},
		Quit:     syscall.SIGINT,  // "fast": rolls back open transactions
		Orphaned: syscall.SIGQUIT, // "immediate": ends its children and frees its shared memory
	}
}

func settings(values ...string) []string {
	var arguments []string
	for _, value := range values {
		arguments = append(arguments, "-c", value)
	}
	return arguments
}
