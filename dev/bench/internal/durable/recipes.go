package durable

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// many connections, since some contenders keep one for each lock.
const many = 600

// postgres is Debian's, with PostgreSQL's own defaults: fsync, full_page_writes
// and synchronous_commit are on.
func postgres() recipe {
	bin := PostgresPrograms()
	settings := []string{"max_connections=" + strconv.Itoa(many), "shared_buffers=256MB", "max_wal_size=4GB", "checkpoint_timeout=30min"}
	return recipe{
		programs: []string{filepath.Join(bin, "postgres"), filepath.Join(bin, "pgbench")},
		packages: []string{"postgresql"},
		account:  "postgres",
		settings: settings,
		create: func(dir string) [][]string {
			return [][]string{{
				filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres",
				"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions",
			}}
		},
		serve: func(dir string, port int) []string {
			command := []string{
				filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"),
				"-c", "listen_addresses=127.0.0.1", "-c", "port=" + strconv.Itoa(port), "-c", "unix_socket_directories=",
			}
			for _, setting := range settings {
				command = append(command, "-c", setting)
			}
			return command
		},
		dsn:  func(address string) string { return "postgres://postgres@" + address + "/postgres?sslmode=disable" },
		quit: syscall.SIGINT,
	}
}

// PostgresPrograms returns the directory of the newest PostgreSQL that Debian's
// packages have put here.
func PostgresPrograms() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is well-formed
	newest, highest := "/usr/lib/postgresql/0/bin", 0
	for _, bin := range found {
		if major, err := strconv.Atoi(filepath.Base(filepath.Dir(bin))); err == nil && major > highest {
			newest, highest = bin, major
		}
	}
	return newest
}

// mariadb is Debian's, with MariaDB's own defaults: innodb_doublewrite is on and
// innodb_flush_log_at_trx_commit 1.
func mariadb() recipe {
	settings := []string{"--max-connections=" + strconv.Itoa(many), "--innodb-buffer-pool-size=256M", "--skip-name-resolve"}
	common := func(dir string) []string {
		arguments := []string{"--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--tmpdir=" + dir}
		if os.Geteuid() == 0 {
			arguments = append(arguments, "--user=root")
		}
		return arguments
	}
	return recipe{
		programs: []string{"mariadbd", "mariadb-install-db", "my_print_defaults"},
		packages: []string{"mariadb-server-core", "mariadb-client-core"},
		settings: settings,
		create: func(dir string) [][]string {
			grants := "CREATE DATABASE IF NOT EXISTS bench;\nCREATE USER IF NOT EXISTS bench@'%' IDENTIFIED BY 'bench';\n" +
				"GRANT ALL ON *.* TO bench@'%';"
			install := append([]string{path("mariadb-install-db")}, common(dir)...)
			return [][]string{
				append(install, "--auth-root-authentication-method=normal", "--skip-test-db"),
				{"/bin/sh", "-c", `echo "$0" >"$1"`, grants, filepath.Join(dir, "user.sql")},
			}
		},
		serve: func(dir string, port int) []string {
			command := append([]string{path("mariadbd")}, common(dir)...)
			return append(append(command, "--bind-address=127.0.0.1", "--port="+strconv.Itoa(port),
				"--socket=s", "--init-file="+filepath.Join(dir, "user.sql")), settings...)
		},
		dsn:  func(address string) string { return fmt.Sprintf("bench:bench@tcp(%s)/bench", address) },
		quit: syscall.SIGTERM,
	}
}

// redis is Debian's, with Redis's own defaults: a snapshot now and then, no log.
// What was acknowledged since the last snapshot is lost in a crash.
func redis() recipe { return redisWith() }

// redisAlways is redis with a log that is flushed for each command.
func redisAlways() recipe { return redisWith("--appendonly", "yes", "--appendfsync", "always") }

func redisWith(settings ...string) recipe {
	return recipe{
		programs: []string{"redis-server"},
		packages: []string{"redis-server"},
		settings: []string{strings.Join(settings, " ")},
		create:   func(string) [][]string { return nil },
		serve: func(dir string, port int) []string {
			return append([]string{path("redis-server"), "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir}, settings...)
		},
		dsn:  func(address string) string { return "redis://" + address },
		quit: syscall.SIGTERM,
	}
}
