package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// newestVersion is PostgreSQL's newest major version, of Debian's suite newestSuite; betaVersion is the one that has
// betas and release candidates now.
const newestVersion, newestSuite, betaVersion = "18", "sid", "19"

// StartPostgresNewest starts a PostgreSQL of the newest major version, whose last minor version is downloaded once
// from Debian's suite sid into the user's cache. Otherwise it is like [StartPostgres].
func StartPostgresNewest(ctx context.Context, dir string) (*Server, error) {
	return startPostgresOf(ctx, dir, PostgresNewest, newestSuite, newestVersion)
}

// StartPostgresBeta starts a beta or a release candidate of PostgreSQL's next major version, from Debian's suite
// experimental, which has one for a part of the year. Otherwise it is like [StartPostgresNewest].
func StartPostgresBeta(ctx context.Context, dir string) (*Server, error) {
	return startPostgresOf(ctx, dir, PostgresBeta, "experimental sid", betaVersion)
}

func startPostgresOf(ctx context.Context, dir, name, suites, version string) (*Server, error) {
	recipe, err := postgresOf(ctx, dir, suites, version)
	if err != nil {
		return nil, err
	}
	recipe.Name = name
	return Start(ctx, recipe, dir)
}

// postgresOf is the recipe for a PostgreSQL of Debian's suites, whose data will be in dir.
func postgresOf(ctx context.Context, dir, suites, version string) (Recipe, error) {
	bin := "usr/lib/postgresql/" + version + "/bin/"
	root, err := fromDebian(ctx, suites, bin+"postgres "+bin+"initdb", "postgresql-"+version)
	if err != nil {
		return Recipe{}, fmt.Errorf("find PostgreSQL %s: %w", version, err)
	}
	root, err = reachable(dir, root)
	return postgres(filepath.Join(root, bin)), err
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
