package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// newestVersion is PostgreSQL's newest major version, betaVersion the one that has betas and release candidates now.
const newestVersion, betaVersion = "18", "19"

// StartPostgresNewest starts a PostgreSQL of the newest major version, whose last minor version is downloaded once
// from Debian's suite sid into the user's cache. Otherwise it is like [StartPostgres].
func StartPostgresNewest(ctx context.Context, dir string) (*Server, error) {
	return startPostgresOf(ctx, dir, PostgresNewest, "sid", newestVersion)
}

// StartPostgresBeta starts a beta or a release candidate of PostgreSQL's next major version, from Debian's suite
// experimental, which has one for a part of the year. Otherwise it is like [StartPostgresNewest].
func StartPostgresBeta(ctx context.Context, dir string) (*Server, error) {
	return startPostgresOf(ctx, dir, PostgresBeta, "experimental sid", betaVersion)
}

func startPostgresOf(ctx context.Context, dir, name, suites, version string) (*Server, error) {
	bin := "usr/lib/postgresql/" + version + "/bin/"
	root, err := fromDebian(ctx, suites, bin+"postgres "+bin+"initdb", "postgresql-"+version)
	if err != nil {
		return nil, fmt.Errorf("find PostgreSQL %s: %w", version, err)
	}
	if root, err = reachable(dir, root); err != nil {
		return nil, err
	}
	started := postgres(filepath.Join(root, bin))
	started.Name = name
	return Start(ctx, started, dir)
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
