package server

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
)

// errNoTarget is returned for a URL that PgBouncer cannot use to connect to PostgreSQL.
var errNoTarget = errors.New("its URL must name a host and a user")

// StartPgBouncer starts the PgBouncer of this machine in front of the PostgreSQL at a URL, with
// its settings in dir. If there is none, it installs Debian's. It pools transactions: each
// transaction of a client may run on another connection. It serves each database of that
// server under the database's own name, without a password, as the URL's user.
//
// The state of a session is lost between transactions: prepared statements, settings, advisory
// locks. So the DSN contains the parameters that drivers need:
//
//   - binary_parameters=yes for lib/pq. Otherwise it sends a statement with arguments in two
//     round trips, which may use different connections.
//   - default_query_exec_mode=exec for pgx. Otherwise it prepares statements.
//
// Each driver passes the other driver's parameter to the server, so PgBouncer is configured to
// ignore both. It does not ignore search_path, which it could not keep: an error is better
// than tables in the wrong schema. Use one database for each test.
func StartPgBouncer(ctx context.Context, dir, postgresURL string) (*Server, error) {
	return StartPgBouncerWith(ctx, dir, postgresURL)
}

// StartPgBouncerWith is StartPgBouncer with more lines for the configuration file. The last
// line of a setting counts.
func StartPgBouncerWith(ctx context.Context, dir, postgresURL string, more ...string) (*Server, error) {
	if err := Ensure(ctx, []string{"pgbouncer"}, "pgbouncer"); err != nil {
		return nil, fmt.Errorf("find PgBouncer: %w", err)
	}
	return startPgBouncer(ctx, Find("pgbouncer"), dir, postgresURL, more...)
}

// StartPgBouncerNewest is [StartPgBouncer] with the PgBouncer of Debian's suite sid, which is downloaded once into the
// user's cache.
func StartPgBouncerNewest(ctx context.Context, dir, postgresURL string) (*Server, error) {
	const program = "usr/sbin/pgbouncer"
	root, err := fromDebian(ctx, "sid", program, "pgbouncer")
	if err != nil {
		return nil, fmt.Errorf("find the newest PgBouncer: %w", err)
	}
	if root, err = reachable(dir, root); err != nil {
		return nil, err
	}
	return startPgBouncer(ctx, filepath.Join(root, program), dir, postgresURL)
}

func startPgBouncer(ctx context.Context, program, dir, postgresURL string, more ...string) (*Server, error) {
	target, err := pgbouncerTarget(postgresURL)
	if err != nil {
		return nil, fmt.Errorf("put PgBouncer in front of PostgreSQL: %w", err)
	}
	return Start(ctx, pgbouncer(program, target, more...), dir)
}

// pgbouncerTarget translates a URL into the format of PgBouncer's configuration file.
func pgbouncerTarget(postgresURL string) (string, error) {
	u, err := url.Parse(postgresURL)
	if err != nil {
		return "", err
	}
	if u.Hostname() == "" || u.User.Username() == "" {
		return "", errNoTarget
	}
	target := fmt.Sprintf("host=%s port=%s user=%s", u.Hostname(), cmp.Or(u.Port(), "5432"), quoted(u.User.Username()))
	if password, ok := u.User.Password(); ok {
		target += " password=" + quoted(password)
	}
	return target, nil
}

func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

//go:embed pgbouncer.ini
var pgbouncerSettings string

// PgBouncerSettings returns the configuration file of a PgBouncer in front of a target, with more settings.
func PgBouncerSettings(address string, port int, target string, more ...string) string {
	return fmt.Sprintf(pgbouncerSettings, address, port, strings.Join(more, "\n"), target)
}

// pgbouncer is the recipe for the PgBouncer of a program in front of the target.
func pgbouncer(program, target string, more ...string) Recipe {
	return Recipe{
		Name:         PgBouncer,
		Driver:       "postgres",
		Unprivileged: true,
		Files: func(port int) map[string]string {
			settings := []string{"server_tls_sslmode = prefer", "server_idle_timeout = 5"} // tests leave databases behind, each with connections
			return map[string]string{"pgbouncer.ini": PgBouncerSettings("127.0.0.1", port, target, append(settings, more...)...)}
		},
		Serve: func(dir string, _ int) []string {
			return []string{program, filepath.Join(dir, "pgbouncer.ini")}
		},
		DSN: func(port int) string {
			return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres"+
				"?sslmode=disable&binary_parameters=yes&default_query_exec_mode=exec", port)
		},
		// One process without data. With a gentler signal, some versions wait until
		// all clients have disconnected.
		Quit:     syscall.SIGKILL,
		Orphaned: syscall.SIGKILL,
	}
}
