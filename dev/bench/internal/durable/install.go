package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrMissing is in the error of a start for which a program is missing that this
// process cannot install.
var ErrMissing = errors.New("not installed")

// ensure installs Debian packages if a program is missing.
func ensure(ctx context.Context, programs, packages []string) error {
	if missing(programs) == "" {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%s %w: as root, apt-get install %s", missing(programs), ErrMissing, strings.Join(packages, " "))
	}
	install := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	if apt(ctx, install...) == nil {
		return nil
	}
	return errors.Join(apt(ctx, "update"), apt(ctx, install...))
}

func missing(programs []string) string {
	for _, program := range programs {
		if _, err := exec.LookPath(path(program)); err != nil {
			return program
		}
	}
	return ""
}

// path returns the path of a program, also of those that only root finds.
func path(program string) string {
	if found, err := exec.LookPath(program); err == nil {
		return found
	}
	return filepath.Join("/usr/sbin", program)
}

// apt keeps the packages from starting servers of their own: Debian asks
// policy-rc.d first.
func apt(ctx context.Context, arguments ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=300"}, arguments...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "RUNLEVEL=1")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, output)
	}
	return nil
}
