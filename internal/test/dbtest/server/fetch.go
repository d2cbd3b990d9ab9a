package server

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/sqllock/sqllock/internal/test/proc"
)

// fetched returns a directory of programs in the user's cache. The first call on a machine
// runs a bash script that fills it. The arguments of the script are an empty directory, which
// is renamed after a success, and the given arguments. An existing directory is not checked
// again; remove it to download the programs anew. The script runs only if [MayInstall].
//
// All errors are an [ErrMissing], since the network or the download site may be the cause.
func fetched(ctx context.Context, name, script string, arguments ...string) (string, error) {
	dir, err := cached(ctx, name, func(partial string) error {
		return runScript(ctx, script, append([]string{partial}, arguments...)...)
	})
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w: %w", name, ErrMissing, err)
	}
	return dir, nil
}

// errMayNot is why a directory of the cache is not filled.
var errMayNot = errors.New("it is not in the cache; make test downloads it")

// cached returns the named directory of the cache. If it does not exist, fill creates it. Only
// one process of the user runs fill at a time.
func cached(ctx context.Context, name string, fill func(partial string) error) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "sqllock-dbtest")
	dir := filepath.Join(cache, name)
	if isDirectory(dir) {
		return dir, nil
	}
	if !MayInstall() {
		return "", errMayNot
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	turn := flock.New(dir + ".lock")
	defer turn.Close() //nolint:errcheck // closing it releases the lock
	if _, err := turn.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	if isDirectory(dir) { // another process has created it
		return dir, nil
	}
	partial := dir + ".partial" // a killed process may have left files in it
	if err := errors.Join(os.RemoveAll(partial), os.Mkdir(partial, 0o755)); err != nil {
		return "", err
	}
	if err := fill(partial); err != nil {
		return "", errors.Join(err, os.RemoveAll(partial))
	}
	return dir, os.Rename(partial, dir)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// runScript runs a bash script, which is killed when this process dies. This does not apply to
// the commands of the script.
func runScript(ctx context.Context, script string, arguments ...string) error {
	const limit = 2 * time.Hour // for a build on a slow machine; a download is of about 70 MB
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-c", script, "fetch"}, arguments...)...)
	if err := runAs(cmd, nil); err != nil {
		return err
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return killFamily(cmd.Process) }
	cmd.WaitDelay = 5 * time.Second // for a grandchild that keeps the output open
	p, err := proc.Start(cmd, syscall.SIGKILL, nil)
	if err != nil {
		return err
	}
	if <-p.Ended; p.Err != nil {
		return fmt.Errorf("%w: %s", errors.Join(ctx.Err(), p.Err), &output)
	}
	return nil
}

// FetchOracleMySQL returns the directory of Oracle's MySQL with all of its libraries, as
// [StartOracleMySQL] uses it. It is downloaded once.
func FetchOracleMySQL(ctx context.Context) (root string, err error) {
	return fromDebian(ctx, "sid", "usr/sbin/mysqld", "mysql-server-core")
}

//go:embed fetch_debian.sh
var fetchDebian string

// fromDebian returns the directory of a package of other suites of Debian, separated by blanks, with all of its
// libraries. Those of its programs that are named, separated by blanks, can be run.
func fromDebian(ctx context.Context, suites, programs, name string) (root string, err error) {
	if err := onlyAMD64(); err != nil {
		return "", err
	}
	return fetched(ctx, "debian-"+name, fetchDebian, suites, programs, name)
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

//go:embed fetch_vitess.sh
var fetchVitess string

// FetchVitess returns the directory of Vitess's programs. They are built once, which takes minutes.
func FetchVitess(ctx context.Context) (dir string, err error) {
	return fetched(ctx, "vitess-0.23.0", fetchVitess)
}
