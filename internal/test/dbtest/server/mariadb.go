package server

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"

	_ "github.com/go-sql-driver/mysql" // the driver for pings
)

// StartMariaDB starts the MariaDB of this machine with its data in dir. If there is none, it
// installs Debian's. The user of the DSN is sqllock, with the password sqllock, from any host.
// The caller stops the server before it removes dir.
func StartMariaDB(ctx context.Context, dir string) (*Server, error) {
	return startBy(ctx, mariadbHere, dir)
}

// mariadbHere is the recipe for the MariaDB of this machine.
func mariadbHere(ctx context.Context) (Recipe, error) {
	// The client's package has my_print_defaults, which mariadb-install-db needs.
	err := Ensure(ctx, []string{"mariadbd", "mariadb-install-db", "my_print_defaults"}, "mariadb-server-core", "mariadb-client-core")
	if err != nil {
		return Recipe{}, fmt.Errorf("find MariaDB: %w", err)
	}
	r := mariadb("mariadb", func(dir string) []string { return append([]string{Find("mariadbd")}, mariadbData(dir)...) })
	r.Create = func(dir string) []string {
		return append(append([]string{Find("mariadb-install-db")}, mariadbData(dir)...),
			"--auth-root-authentication-method=normal", "--skip-test-db",
			"--innodb-log-file-size=16M", "--innodb-buffer-pool-size=64M")
	}
	return r, nil
}

// mariadbUser is run at every start of the server.
const mariadbUser = `CREATE DATABASE IF NOT EXISTS sqllock;
CREATE USER IF NOT EXISTS sqllock@'%' IDENTIFIED BY 'sqllock';
GRANT ALL ON *.* TO sqllock@'%' WITH GRANT OPTION;
`

// mariadbData are the arguments that name the data directory below dir.
func mariadbData(dir string) []string {
	arguments := []string{
		"--no-defaults",
		"--datadir=" + filepath.Join(dir, "data"),
		// Not the system's directory: a server that starts removes the files of
		// other servers there.
		"--tmpdir=" + dir,
	}
	if isRoot() {
		arguments = append(arguments, "--user=root") // without it, the server refuses to run as root
	}
	return arguments
}

// mariadb is the recipe for the MariaDB server that the command runs on the data below dir; Create is missing.
func mariadb(name string, command func(dir string) []string) Recipe {
	return mysqlRecipe(name, command,
		"--performance-schema=OFF",
		"--innodb-flush-log-at-trx-commit=0",
		"--innodb-doublewrite=OFF",
		"--innodb-log-file-size=16M",
		"--innodb-buffer-pool-size=64M")
}

// mysqlRecipe is what the recipes of MariaDB and of Oracle's MySQL have in common; create is missing.
// command runs the daemon on the data directory, and settings are added to it for a server.
func mysqlRecipe(name string, command func(dir string) []string, settings ...string) Recipe {
	return Recipe{
		Name:   name,
		Driver: "mysql",
		Files:  func(int) map[string]string { return map[string]string{"user.sql": mariadbUser} },
		Serve: func(dir string, port int) []string {
			return append(append(command(dir),
				"--bind-address=127.0.0.1",
				"--port="+strconv.Itoa(port),
				"--socket=s", // in the data directory, since absolute paths may be too long
				"--init-file="+filepath.Join(dir, "user.sql"),
				"--max-connections=1500", // each cell of the contract has a pool of its own
				"--skip-name-resolve"), settings...)
		},
		DSN: func(port int) string {
			return fmt.Sprintf("sqllock:sqllock@tcp(127.0.0.1:%d)/sqllock", port) // the user of mariadbUser
		},
		Quit:     syscall.SIGTERM,
		Orphaned: syscall.SIGKILL, // one process, no shared memory: nothing to clean up
	}
}
