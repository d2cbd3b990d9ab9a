package durable

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// many connections, since some contenders keep one for each lock, and the processes of a fleet have pools of
// their own.
const many = 2500

// Each recipe's settings are its differences from the server's defaults.
type recipe struct {
	server.Recipe

	settings []string
	dsn      func(address string) string
}

// postgres is Debian's, with PostgreSQL's own defaults: fsync, full_page_writes
// and synchronous_commit are on.
func postgres(ctx context.Context) (recipe, error) {
	bin, err := server.EnsurePostgres(ctx)
	r := recipe{
		settings: []string{"max_connections=" + strconv.Itoa(many), "shared_buffers=256MB", "max_wal_size=4GB", "checkpoint_timeout=30min"},
		dsn:      func(address string) string { return "postgres://postgres@" + address + "/postgres?sslmode=disable" },
	}
	r.Recipe = server.Recipe{
		Driver:       "postgres",
		Unprivileged: true,
		Create: func(dir string) []string {
			return []string{
				filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres",
				"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions",
			}
		},
		Serve: func(dir string, port int) []string {
			command := []string{
				filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"),
				"-c", "listen_addresses=127.0.0.1", "-c", "port=" + strconv.Itoa(port), "-c", "unix_socket_directories=",
			}
			for _, setting := range r.settings {
				command = append(command, "-c", setting)
			}
			return command
		},
		Quit: syscall.SIGINT, Orphaned: syscall.SIGQUIT,
	}
	return r, err
}

// mariadb is Debian's, with MariaDB's own defaults: innodb_doublewrite is on and
// innodb_flush_log_at_trx_commit 1.
func mariadb(ctx context.Context) (recipe, error) {
	err := server.Ensure(ctx, []string{"mariadbd", "mariadb-install-db", "my_print_defaults"}, "mariadb-server-core", "mariadb-client-core")
	r := recipe{
		settings: []string{"--max-connections=" + strconv.Itoa(many), "--innodb-buffer-pool-size=256M", "--skip-name-resolve"},
		dsn:      func(address string) string { return fmt.Sprintf("bench:bench@tcp(%s)/bench", address) },
	}
	common := func(program, dir string) []string {
		command := []string{server.Find(program), "--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--tmpdir=" + dir}
		if os.Geteuid() == 0 {
			command = append(command, "--user=root")
		}
		return command
	}
	const grants = "CREATE DATABASE IF NOT EXISTS bench;\nCREATE USER IF NOT EXISTS bench@'%' IDENTIFIED BY 'bench';\n" +
		"GRANT ALL ON *.* TO bench@'%';\n"
	r.Recipe = server.Recipe{
		Driver: "mysql",
		Files:  func(int) map[string]string { return map[string]string{"user.sql": grants} },
		Create: func(dir string) []string {
			return append(common("mariadb-install-db", dir), "--auth-root-authentication-method=normal", "--skip-test-db")
		},
		Serve: func(dir string, port int) []string {
			return append(append(common("mariadbd", dir), "--bind-address=127.0.0.1", "--port="+strconv.Itoa(port),
				"--socket=s", "--init-file="+filepath.Join(dir, "user.sql")), r.settings...)
		},
		Quit: syscall.SIGTERM, Orphaned: syscall.SIGKILL,
	}
	return r, err
}

// redis is Debian's. Without settings it has Redis's own defaults: a snapshot now and then, no log.
// What was acknowledged since the last snapshot is lost in a crash.
func redis(settings ...string) func(ctx context.Context) (recipe, error) {
	return func(ctx context.Context) (recipe, error) {
		err := server.Ensure(ctx, []string{"redis-server"}, "redis-server")
		r := recipe{settings: []string{strings.Join(settings, " ")}, dsn: func(address string) string { return "redis://" + address }}
		r.Recipe = server.Recipe{
			Serve: func(dir string, port int) []string {
				return append([]string{server.Find("redis-server"), "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir}, settings...)
			},
			Quit: syscall.SIGTERM, Orphaned: syscall.SIGKILL,
		}
		return r, err
	}
}

// etcd is Debian's, with its own defaults: it waits for the disk at each commit.
func etcd(ctx context.Context) (recipe, error) {
	err := server.Ensure(ctx, []string{"etcd"}, "etcd-server")
	r := recipe{dsn: func(address string) string { return "http://" + address }}
	r.Recipe = server.Recipe{
		Serve: func(dir string, port int) []string {
			clients := fmt.Sprintf("http://127.0.0.1:%d", port)
			return []string{
				server.Find("etcd"), "--data-dir", filepath.Join(dir, "data"), "--listen-client-urls", clients,
				"--advertise-client-urls", clients, "--listen-peer-urls", "http://127.0.0.1:0",
			}
		},
		Quit: syscall.SIGTERM, Orphaned: syscall.SIGKILL,
	}
	return r, err
}
