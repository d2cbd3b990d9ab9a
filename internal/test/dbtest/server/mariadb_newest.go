package server

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

// StartMariaDBNewest starts the MariaDB of the newest long-term series, 11.8, with its data in dir. It is
// downloaded once from Debian's suite trixie into the user's cache. Unlike 10.11, it has innodb_snapshot_isolation
// on by default. The user of the DSN is that of [StartMariaDB].
func StartMariaDBNewest(ctx context.Context, dir string) (*Server, error) {
	return startBy(ctx, mariadbNewest, dir)
}

// mariadbNewest is the recipe for the MariaDB that is downloaded.
func mariadbNewest(ctx context.Context) (Recipe, error) {
	root, err := fromDebian(ctx, "trixie", "usr/sbin/mariadbd", "mariadb-server-core")
	if err != nil {
		return Recipe{}, fmt.Errorf("find the newest MariaDB: %w", err)
	}
	command := func(dir string) []string { return MariaDBDaemon(root, mariadbData(dir)...) }
	r := mariadb(MariaDBNewest, command)
	r.Create = func(dir string) []string {
		return CreateMariaDB(root, filepath.Join(dir, "data"),
			append(command(dir), "--innodb-log-file-size=16M", "--innodb-buffer-pool-size=64M"))
	}
	return r, nil
}

// FetchGaleraNewest returns the directory of the MariaDB that [StartMariaDBNewest] starts, with Galera and the
// scripts that copy a node's data. It is downloaded once.
func FetchGaleraNewest(ctx context.Context) (root string, err error) {
	return fromDebian(ctx, "trixie", "usr/sbin/mariadbd", "mariadb-server")
}

// MariaDBDaemon returns the command of the MariaDB below root with these arguments, of which the first may be one that must be
// the first.
func MariaDBDaemon(root string, arguments ...string) []string {
	share := filepath.Join(root, "usr/share/mariadb")
	return slices.Concat([]string{filepath.Join(root, "usr/sbin/mariadbd")}, arguments,
		[]string{"--basedir=" + filepath.Join(root, "usr"), "--lc-messages-dir=" + share, "--character-sets-dir=" + filepath.Join(share, "charsets")})
}

// CreateMariaDB returns the command that creates a data directory, for the MariaDB below root and its command.
func CreateMariaDB(root, data string, command []string) []string {
	return slices.Concat([]string{"sh", "-ec", createMariaDB, filepath.Join(root, "usr/share/mariadb"), data}, command, []string{"--bootstrap"})
}

// createMariaDB is what mariadb-install-db does, which would run the programs without their libraries. Its
// arguments are the directory of the server's scripts, the data directory, and the server's command.
const createMariaDB = `mkdir -m 700 "$1"; shift
cd "$0"
sql=$(cat mariadb_system_tables.sql mariadb_performance_tables.sql mariadb_system_tables_data.sql maria_add_gis_sp_bootstrap.sql mariadb_sys_schema.sql)
{ printf '%s;\n' 'CREATE DATABASE mysql' 'USE mysql' 'SET @auth_root_socket = NULL'; printf '%s\n' "$sql"; } | "$@"`
