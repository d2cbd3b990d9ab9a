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
	share := filepath.Join(root, "usr/share/mariadb")
	command := func(dir string) []string {
		return slices.Concat([]string{filepath.Join(root, "usr/sbin/mariadbd")}, mariadbData(dir),
			[]string{"--basedir=" + filepath.Join(root, "usr"), "--lc-messages-dir=" + share, "--character-sets-dir=" + filepath.Join(share, "charsets")})
	}
	r := mariadb(MariaDBNewest, command)
	r.Create = func(dir string) []string {
		return slices.Concat([]string{"sh", "-ec", createMariaDB, share, filepath.Join(dir, "data")}, command(dir),
			[]string{"--bootstrap", "--innodb-log-file-size=16M", "--innodb-buffer-pool-size=64M"})
	}
	return r, nil
}

// createMariaDB is what mariadb-install-db does, which would run the programs without their libraries. Its
// arguments are the directory of the server's scripts, the data directory, and the server's command.
const createMariaDB = `mkdir -m 700 "$1"; shift
cd "$0"
sql=$(cat mariadb_system_tables.sql mariadb_performance_tables.sql mariadb_system_tables_data.sql maria_add_gis_sp_bootstrap.sql mariadb_sys_schema.sql)
{ printf '%s;\n' 'CREATE DATABASE mysql' 'USE mysql' 'SET @auth_root_socket = NULL'; printf '%s\n' "$sql"; } | "$@"`
