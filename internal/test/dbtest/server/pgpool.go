package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"syscall"
)

// A Balanced is a Pgpool-II that balances reads between a PostgreSQL and its standby.
type Balanced struct {
	Pool, Primary, Standby *Server
}

// StartPgpool starts the Pgpool-II of this machine in front of two servers of its own, with their data in dir. If there
// is none, it installs Debian's. All queries that it takes for mere reads go to the standby.
func StartPgpool(ctx context.Context, dir string) (b *Balanced, err error) {
	bin, err := EnsurePostgres(ctx)
	if err != nil {
		return nil, fmt.Errorf("find PostgreSQL: %w", err)
	}
	if err := Ensure(ctx, []string{"pgpool"}, "pgpool2"); err != nil {
		return nil, fmt.Errorf("find Pgpool-II: %w", err)
	}
	b = &Balanced{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Stop())
		}
	}()
	if b.Primary, err = Start(ctx, postgres(bin), filepath.Join(dir, "primary")); err != nil {
		return b, err
	}
	if b.Standby, err = Start(ctx, postgres(bin).replicating(b.Primary), filepath.Join(dir, "standby")); err != nil {
		return b, err
	}
	b.Pool, err = Start(ctx, pgpool(portOf(b.Primary), portOf(b.Standby)), filepath.Join(dir, "pgpool"))
	return b, err
}

// Stop ends what runs of the three.
func (b *Balanced) Stop() error {
	var errs []error
	for _, s := range []*Server{b.Pool, b.Standby, b.Primary} {
		if s != nil {
			errs = append(errs, s.Stop())
		}
	}
	return errors.Join(errs...)
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
num_init_children = 64
max_pool = 1
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
