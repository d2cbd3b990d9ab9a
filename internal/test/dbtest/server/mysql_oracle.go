package server

import (
	"context"
	"fmt"
	"path/filepath"
)

// StartOracleMySQL starts Oracle's MySQL with its data in dir. It is downloaded once from
// Debian's suite sid into the user's cache. The suite changes, so another machine may get
// another version, or none. The user of the DSN is that of [StartMariaDB].
func StartOracleMySQL(ctx context.Context, dir string) (*Server, error) {
	root, err := FetchOracleMySQL(ctx)
	if err != nil {
		return nil, fmt.Errorf("find Oracle's MySQL: %w", err)
	}
	return Start(ctx, oracleMySQL(root), dir)
}

// OracleMySQLDaemon returns the command of the MySQL below root, as [FetchOracleMySQL] returns it, with its data in dir.
func OracleMySQLDaemon(root, dir string) []string {
	arguments := []string{
		filepath.Join(root, "usr/sbin/mysqld"),
		"--no-defaults",
		"--basedir=" + filepath.Join(root, "usr"),
		"--lc-messages-dir=" + filepath.Join(root, "usr/share/mysql"),
		"--plugin-dir=" + filepath.Join(root, "usr/lib/mysql/plugin"),
		"--datadir=" + filepath.Join(dir, "data"),
		// Not the system's directory: a server that starts removes the files of
		// other servers there.
		"--tmpdir=" + dir,
		"--secure-file-priv=NULL", // the default is a directory of an installed server
		"--innodb-buffer-pool-size=64M",
		"--innodb-redo-log-capacity=64M", // with less, creation waits for checkpoints
	}
	if isRoot() {
		arguments = append(arguments, "--user=root") // without it, the server refuses to run as root
	}
	return arguments
}

// oracleMySQL is the recipe for the MySQL and its libraries below root.
func oracleMySQL(root string) Recipe {
	common := func(dir string) []string {
		return append(OracleMySQLDaemon(root, dir), "--performance-schema=OFF", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF")
	}
	r := mysqlRecipe(OracleMySQL, common, "--mysqlx=OFF", "--innodb-fast-shutdown=2", "--sync-binlog=0")
	r.Create = func(dir string) []string { return append(common(dir), "--initialize-insecure") }
	return r
}
