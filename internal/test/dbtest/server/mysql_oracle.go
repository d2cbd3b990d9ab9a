package server

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
)

//go:embed fetch_mysql.sh
var fetchMySQL string

// StartOracleMySQL starts Oracle's MySQL with its data in dir. It is downloaded once from
// Debian's suite sid into the user's cache. The suite changes, so another machine may get
// another version, or none. The user of the DSN is that of [StartMariaDB].
func StartOracleMySQL(ctx context.Context, dir string) (*Server, error) {
	root, err := FetchOracleMySQL(ctx)
	if err != nil {
		return nil, fmt.Errorf("find Oracle's MySQL: %w", err)
	}
	return start(ctx, oracleMySQL(root), dir)
}

// oracleMySQL is the recipe for the MySQL and its libraries below root.
func oracleMySQL(root string) recipe {
	daemon := filepath.Join(root, "usr/sbin/mysqld")
	common := func(dir string) []string {
		arguments := []string{
			// The machine's own C library may be too old.
			filepath.Join(root, "usr/lib64/ld-linux-x86-64.so.2"),
			"--library-path", filepath.Join(root, "usr/lib/x86_64-linux-gnu"),
			"--argv0", daemon, daemon,
			"--no-defaults",
			"--basedir=" + filepath.Join(root, "usr"),
			"--lc-messages-dir=" + filepath.Join(root, "usr/share/mysql"),
			"--plugin-dir=" + filepath.Join(root, "usr/lib/mysql/plugin"),
			"--datadir=" + filepath.Join(dir, "data"),
			// Not the system's directory: a server that starts removes the files of
			// other servers there.
			"--tmpdir=" + dir,
			"--secure-file-priv=NULL", // the default is a directory of an installed server
			"--performance-schema=OFF",
			"--innodb-flush-log-at-trx-commit=0",
			"--innodb-doublewrite=OFF",
			"--innodb-buffer-pool-size=64M",
			"--innodb-redo-log-capacity=64M", // with less, creation waits for checkpoints
		}
		if isRoot() {
			arguments = append(arguments, "--user=root") // without it, the server refuses to run as root
		}
		return arguments
	}
	return recipe{
		name:   OracleMySQL,
		driver: "mysql",
		files:  func(int) map[string]string { return map[string]string{"user.sql": mariadbUser} },
		create: func(dir string) []string { return append(common(dir), "--initialize-insecure") },
		serve: func(dir string, port int) []string {
			return append(common(dir),
				"--bind-address=127.0.0.1",
				"--port="+strconv.Itoa(port),
				"--socket=s", // in the data directory, since absolute paths may be too long
				"--mysqlx=OFF",
				"--init-file="+filepath.Join(dir, "user.sql"),
				"--max-connections=1500", // each cell of the contract has a pool of its own
				"--skip-name-resolve",
				"--innodb-fast-shutdown=2",
				"--sync-binlog=0")
		},
		dsn:      mysqlDSN,
		quit:     syscall.SIGTERM,
		orphaned: syscall.SIGKILL, // one process, no shared memory: nothing to clean up
	}
}
