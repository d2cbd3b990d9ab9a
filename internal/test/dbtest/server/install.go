package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ErrMissing is wrapped by the error of a start if a program is missing and this process
// cannot install it, or may not.
var ErrMissing = errors.New("not installed")

// InstallVariable is the environment variable that lets a process install Debian packages and
// download programs. The program withservers sets it for itself and for its command. A test
// that a user starts with go test installs nothing.
const InstallVariable = "SQLLOCK_MAY_INSTALL"

// MayInstall reports whether this process may install and download programs.
func MayInstall() bool { return os.Getenv(InstallVariable) != "" }

// ensure returns the result of look. If look finds nothing, ensure installs Debian packages
// and calls look again.
func ensure(ctx context.Context, look func() (string, bool), packages ...string) (string, error) {
	if found, ok := look(); ok {
		return found, nil
	}
	if err := install(ctx, packages...); err != nil {
		return "", err
	}
	found, ok := look()
	if !ok {
		return "", fmt.Errorf("%w, even after installing the packages %s", ErrMissing, strings.Join(packages, " "))
	}
	return found, nil
}

// Find returns the path of a program, or its name if it is not installed.
func Find(program string) string {
	path, _ := find(program)
	return cmp.Or(path, program)
}

// find returns the path of a program. Debian keeps servers in directories that are only on
// root's PATH.
func find(program string) (string, bool) {
	if path, err := exec.LookPath(program); err == nil {
		return path, true
	}
	path, err := exec.LookPath(filepath.Join("/usr/sbin", program))
	return path, err == nil
}

func install(ctx context.Context, packages ...string) error {
	advice := "apt-get install --no-install-recommends " + strings.Join(packages, " ")
	if !MayInstall() {
		return fmt.Errorf("%w; run make test, which installs it, or as root on Debian: %s", ErrMissing, advice)
	}
	if _, ok := find("apt-get"); !ok {
		return fmt.Errorf("%w, and this is not Debian, where the command would be: %s", ErrMissing, advice)
	}
	if !isRoot() {
		return fmt.Errorf("%w; run as root: %s", ErrMissing, advice)
	}
	arguments := append([]string{"install", "--yes", "--no-install-recommends"}, packages...)
	if apt(ctx, arguments...) == nil {
		return nil
	}
	// The package lists are missing or outdated, as on a new machine.
	if err := apt(ctx, "update"); err != nil {
		return err
	}
	return apt(ctx, arguments...)
}

// aptTurn is held by the goroutine that installs: apt-get waits for another apt-get only in
// some of its steps.
var aptTurn sync.Mutex

// apt runs apt-get, and does not kill it when ctx ends: after that, the machine might be unable
// to install packages.
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
	// RUNLEVEL keeps the packages from starting servers of their own.
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "RUNLEVEL=1")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, output)
	}
	return nil
}

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

// An account is the operating-system user as which a server runs, since some servers refuse
// to run as root. nil means the caller's own account.
type account struct{ user, group uint32 }

func isRoot() bool { return os.Geteuid() == 0 }

// lookUp returns the account of a user.
func lookUp(name string) (*account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user id of %s: %w", name, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("group id of %s: %w", name, err)
	}
	return &account{user: uint32(uid), group: uint32(gid)}, nil
}

// unprivileged returns an account for servers that refuse to run as root, or nil if the
// caller is not root. Debian's packages create the user postgres; the user "nobody" exists
// everywhere.
func unprivileged() (*account, error) {
	if !isRoot() {
		return nil, nil //nolint:nilnil // nil is the caller's own account
	}
	if as, err := lookUp("postgres"); err == nil {
		return as, nil
	}
	return lookUp("nobody")
}

// own makes the account the owner of a directory or a file. The account must be able to pass
// the directories above it, as it can in a [Scratch].
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.user), int(a.group))
}
