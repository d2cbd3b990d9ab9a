package durable

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
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
	database string // if the kind of server is another version of it
}

// postgres is Debian's, with PostgreSQL's own defaults: fsync, full_page_writes
// and synchronous_commit are on.
func postgres(ctx context.Context, _ string) (recipe, error) {
	r, err := server.DurablePostgres(ctx)
	return recipeOfPostgres(r), err
}

// postgresNewest is PostgreSQL's newest major version, from Debian's packages, likewise.
func postgresNewest(ctx context.Context, dir string) (recipe, error) {
	r, err := server.DurablePostgresNewest(ctx, dir)
	return recipeOfPostgres(r), err
}

func recipeOfPostgres(r server.Recipe) recipe {
	settings := []string{"--max_connections=" + strconv.Itoa(many), "--shared_buffers=256MB", "--max_wal_size=4GB", "--checkpoint_timeout=30min"}
	return recipe{Recipe: r.With(settings...), settings: settings, database: Postgres}
}

// mariadb is Debian's, with MariaDB's own defaults: innodb_doublewrite is on and
// innodb_flush_log_at_trx_commit 1.
func mariadb(ctx context.Context, _ string) (recipe, error) {
	r, err := server.DurableMariaDB(ctx)
	settings := []string{"--max-connections=" + strconv.Itoa(many), "--innodb-buffer-pool-size=256M", "--skip-name-resolve"}
	return recipe{Recipe: r.With("--innodb-log-file-size=96M").With(settings...), settings: settings}, err // the recipe's file is smaller than the default
}

// oracleMySQL is Oracle's MySQL with its own defaults, a binary log among them that waits for the disk, too.
func oracleMySQL(ctx context.Context, _ string) (recipe, error) {
	r, err := server.DurableOracleMySQL(ctx)
	settings := []string{"--max-connections=" + strconv.Itoa(many), "--innodb-buffer-pool-size=256M", "--skip-name-resolve"}
	return recipe{Recipe: r.With(settings...), settings: settings}, err
}

// redis is Debian's. Without settings it has Redis's own defaults: a snapshot now and then, no log.
// What was acknowledged since the last snapshot is lost in a crash.
func redis(settings ...string) func(ctx context.Context, dir string) (recipe, error) {
	return func(ctx context.Context, _ string) (recipe, error) {
		err := server.Ensure(ctx, []string{"redis-server"}, "redis-server")
		r := recipe{settings: settings}
		r.Recipe = server.Recipe{
			DSN: func(port int) string { return fmt.Sprintf("redis://127.0.0.1:%d", port) },
			Serve: func(dir string, port int) []string {
				return append([]string{server.Find("redis-server"), "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir}, settings...)
			},
			Quit: syscall.SIGTERM, Orphaned: syscall.SIGKILL,
		}
		return r, err
	}
}

// etcd is Debian's, with its own defaults: it waits for the disk at each commit.
func etcd(ctx context.Context, _ string) (recipe, error) {
	err := server.Ensure(ctx, []string{"etcd"}, "etcd-server")
	clients := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	return recipe{Recipe: server.Recipe{
		DSN: clients,
		Serve: func(dir string, port int) []string {
			return []string{
				server.Find("etcd"), "--data-dir", filepath.Join(dir, "data"), "--listen-client-urls", clients(port),
				"--advertise-client-urls", clients(port), "--listen-peer-urls", "http://127.0.0.1:0",
			}
		},
		Quit: syscall.SIGTERM, Orphaned: syscall.SIGKILL,
	}}, err
}
