package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"syscall"
)

// startPgpool starts a Pgpool-II with a standby that shows what is committed, so that a test may read there what
// it has written.
func startPgpool(ctx context.Context, dir string) (*Server, error) {
	pool, _, _, err := StartPgpool(ctx, dir, settings("synchronous_standby_names="+replicaName, "synchronous_commit=remote_apply")...)
	return pool, err
}

// StartPgpool starts the Pgpool-II of this machine in front of two servers of its own, with their data beside
// dir. If there is none, it installs Debian's. All queries that it takes for mere reads go to the standby, which lags
// behind the primary unless arguments for the primary say otherwise. Both end with the pool.
func StartPgpool(ctx context.Context, dir string, arguments ...string) (pool, primary, standby *Server, err error) {
	bin, err := EnsurePostgres(ctx)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("find PostgreSQL: %w", err)
	}
	if err := Ensure(ctx, []string{"pgpool"}, "pgpool2"); err != nil {
		return nil, nil, nil, fmt.Errorf("find Pgpool-II: %w", err)
	}
	if primary, err = Start(ctx, postgres(bin).With(arguments...), dir+"-primary"); err != nil {
		return nil, nil, nil, err
	}
	if standby, err = Start(ctx, postgres(bin).replicating(primary), dir+"-standby"); err != nil {
		return nil, nil, nil, errors.Join(err, primary.Stop())
	}
	if pool, err = Start(ctx, pgpool(portOf(primary), portOf(standby)), dir); err != nil {
		return nil, nil, nil, errors.Join(err, standby.Stop(), primary.Stop())
	}
	pool.behind = []*Server{standby, primary}
	return pool, primary, standby, nil
}

func portOf(s *Server) string {
	u, err := url.Parse(s.DSN())
	if err != nil {
		return "" // a recipe of this package makes it
	}
	return u.Port()
}

// pgpool is the recipe for a Pgpool-II in front of a primary and a standby.
func pgpool(primary, standby string) Recipe {
	return Recipe{
		Name:         "pgpool",
		Driver:       "postgres",
		Unprivileged: true,
		Files: func(port int) map[string]string {
			return map[string]string{"pcp.conf": "", "pgpool.conf": fmt.Sprintf(`
listen_addresses = '127.0.0.1'
port = %d
socket_dir = '.'
pcp_socket_dir = '.'
pcp_listen_addresses = ''
pid_file_name = 'pgpool.pid'
logdir = '.'
backend_clustering_mode = 'streaming_replication'
backend_hostname0 = '127.0.0.1'
backend_port0 = %s
backend_weight0 = 0
backend_hostname1 = '127.0.0.1'
backend_port1 = %s
backend_weight1 = 1
sr_check_period = 1
sr_check_user = 'postgres'
load_balance_mode = on
num_init_children = 256
max_pool = 1
child_life_time = 0
serialize_accept = on
failover_on_backend_error = off
`, port, primary, standby)}
		},
		Serve: func(dir string, _ int) []string {
			// The socket's path is relative to the directory: that may be too long.
			return []string{"sh", "-c", `cd "$0" && exec "$1" -n -f pgpool.conf -F pcp.conf`, dir, Find("pgpool")}
		},
		DSN: func(port int) string {
			return "postgres://postgres@127.0.0.1:" + strconv.Itoa(port) + "/postgres?sslmode=disable"
		},
		Quit:     syscall.SIGINT,
		Orphaned: syscall.SIGINT,
	}
}
