package server

import (
	"context"
	_ "embed"
	"os/exec"
)

// Ensure installs Debian packages if one of the programs is missing. The error wraps [ErrMissing]
// if this process cannot install them, or may not.
func Ensure(ctx context.Context, programs []string, packages ...string) error {
	_, err := ensure(ctx, func() (string, bool) {
		for _, program := range programs {
			if _, ok := find(program); !ok {
				return "", false
			}
		}
		return "", true
	}, packages...)
	return err
}

// FetchOracleMySQL returns the directory of Oracle's MySQL with all of its libraries, as
// [StartOracleMySQL] uses it. It is downloaded once.
func FetchOracleMySQL(ctx context.Context) (root string, err error) {
	if err := onlyAMD64(); err != nil {
		return "", err
	}
	return fetched(ctx, "mysql-sid", fetchMySQL)
}

//go:embed fetch_patroni.sh
var fetchPatroni string

// FetchPatroni returns the directory of a Python environment that has Patroni, with a driver for
// PostgreSQL and one for etcd. It is made once; run bin/python3 in it.
func FetchPatroni(ctx context.Context) (dir string, err error) {
	const python = "/usr/bin/python3"
	look := func() (string, bool) {
		return python, exec.CommandContext(ctx, python, "-c", "import ensurepip").Run() == nil
	}
	if _, err := ensure(ctx, look, "python3-venv"); err != nil {
		return "", err
	}
	return fetched(ctx, "patroni-4.1", fetchPatroni)
}

// EnsurePostgres returns the directory of the programs of this machine's newest PostgreSQL, and
// installs Debian's if there is none.
func EnsurePostgres(ctx context.Context) (bin string, err error) {
	return ensure(ctx, newestPostgres, "postgresql")
}
