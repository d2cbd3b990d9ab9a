package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ErrMissing is in the error of a start for which a program is missing that
// this process cannot or may not install.
var ErrMissing = errors.New("not installed")

// ensure returns what look finds, installing Debian packages when it finds
// nothing at first.
func ensure(ctx context.Context, look func() (string, bool), packages ...string) (string, error) {
	if found, ok := look(); ok {
		return found, nil
	}
	if err := install(ctx, packages...); err != nil {
		return "", err
	}
	found, ok := look()
	if !ok {
		return "", fmt.Errorf("%w, even by the packages %s", ErrMissing, strings.Join(packages, " "))
	}
	return found, nil
}

// find returns the path of a program. Debian keeps servers in directories that
// are on root's PATH only.
func find(program string) (string, bool) {
	if path, err := exec.LookPath(program); err == nil {
		return path, true
	}
	path, err := exec.LookPath(filepath.Join("/usr/sbin", program))
	return path, err == nil
}

func install(ctx context.Context, packages ...string) error {
	advice := "apt-get install --no-install-recommends " + strings.Join(packages, " ")
	if _, ok := find("apt-get"); !ok {
		return fmt.Errorf("%w, and this is no Debian; there it would be: %s", ErrMissing, advice)
	}
	if !isRoot() {
		return fmt.Errorf("%w; run as root: %s", ErrMissing, advice)
	}
	arguments := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	if apt(ctx, arguments...) == nil {
		return nil
	}
	// The package lists are missing or older than the archive, as on a new
	// machine.
	if err := apt(ctx, "update"); err != nil {
		return err
	}
	return apt(ctx, arguments...)
}

// aptTurn is held by the goroutine that installs: apt-get waits for another's
// end only in a part of its work.
var aptTurn sync.Mutex

// apt runs apt-get, to its end even when ctx ends: a package manager that is
// killed leaves a machine that cannot install anything.
func apt(ctx context.Context, arguments ...string) error {
	aptTurn.Lock()
	defer aptTurn.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	const limit = 10 * time.Minute
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	// Another process of the same test run may be installing.
	arguments = append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, arguments...)
	cmd := exec.CommandContext(ctx, "apt-get", arguments...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, output)
	}
	return nil
}
