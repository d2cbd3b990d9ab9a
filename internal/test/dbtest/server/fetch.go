package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// fetched returns a directory of programs that are not installed, but kept in
// the user's cache. At the first time on a machine a script, for bash, fills
// it: its arguments are an empty directory, which is the final one only after
// a success, and those given. A directory that is there is never looked at
// again; remove it to have it fetched anew.
//
// Whatever goes wrong is an [ErrMissing]: the network, or what is offered
// there, can be to blame.
func fetched(ctx context.Context, name, script string, arguments ...string) (string, error) {
	dir, err := cached(ctx, name, func(partial string) error {
		return runScript(ctx, script, append([]string{partial}, arguments...)...)
	})
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w: %w", name, ErrMissing, err)
	}
	return dir, nil
}

// cached returns the named directory of the cache. When it is not there, fill
// makes it, once at a time over all processes of the user's.
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
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	turn := flock.New(dir + ".lock")
	defer turn.Close() //nolint:errcheck // closing is all that is left to do with it
	if _, err := turn.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	if isDirectory(dir) { // by whoever had the turn before
		return dir, nil
	}
	partial := dir + ".partial" // perhaps with what a killed process left
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

// runScript runs a bash script that dies with this process. Its commands do
// only if they ask for that themselves.
func runScript(ctx context.Context, script string, arguments ...string) error {
	const limit = 5 * time.Minute // some 70 MB
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	attributes, err := attributes(nil, syscall.SIGKILL)
	if err != nil {
		return err
	}
	// The kernel takes the death of the starting thread for that of the parent.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-c", script, "fetch"}, arguments...)...)
	cmd.SysProcAttr = attributes
	cmd.Cancel = func() error { return killFamily(cmd.Process) }
	cmd.WaitDelay = 5 * time.Second // for a grandchild that holds the output open
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", errors.Join(ctx.Err(), err), output)
	}
	return nil
}
