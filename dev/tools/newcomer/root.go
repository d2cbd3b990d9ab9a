//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A root is a copy of a fresh Debian.
type root struct {
	dir     string
	goproxy string // of this machine
}

// packages is what the documents ask for, Go aside, and what shows completion and man pages.
const packages = "ca-certificates,git,make,bash-completion,man-db"

// newRoot copies the Debian in the directory. It makes that first if there is none.
func newRoot(ctx context.Context, debian string) (*root, error) {
	if _, err := os.Stat(debian); err != nil {
		if err := bootstrap(ctx, debian); err != nil {
			return nil, err
		}
	}
	goproxy, err := exec.CommandContext(ctx, "go", "env", "GOPROXY").Output()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sqllock-newcomer-")
	if err != nil {
		return nil, err
	}
	r := &root{dir, strings.TrimSpace(string(goproxy))}
	err = command(ctx, "", "cp", "-a", debian+"/.", dir)
	// How this machine reaches the network, and what it trusts there.
	for _, path := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt"} {
		err = errors.Join(err, command(ctx, "", "cp", "--dereference", path, filepath.Join(dir, path)))
	}
	return r, err
}

// bootstrap makes a Debian, or nothing.
func bootstrap(ctx context.Context, debian string) error {
	if err := os.MkdirAll(filepath.Dir(debian), 0o755); err != nil {
		return err
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		if err := command(ctx, "", "sh", "-c", "apt-get -q install --yes debootstrap || { apt-get -q update && apt-get -q install --yes debootstrap; }"); err != nil {
			return err
		}
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(debian), "unfinished-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(unfinished) }() // it was renamed
	if err := command(ctx, "", "debootstrap", "--variant=minbase", "--include="+packages, "bookworm", unfinished); err != nil {
		return err
	}
	return errors.Join(os.Chmod(unfinished, 0o755), os.Rename(unfinished, debian))
}

// inside is a shell's script that runs the script $1 as a user of the root $0, with $2 as home and $3
// as GOPROXY. Its mounts are of its own namespace.
const inside = `set -e
mkdir -p "$0/usr/local/go" "$0$2"
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
mount --bind "$(go env GOROOT)" "$0/usr/local/go"
mount -o remount,bind,ro "$0/usr/local/go"
exec chroot "$0" env -i HOME="$2" LANG=C.UTF-8 PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	GOPROXY="$3" GONOSUMDB=` + module + ` GOTOOLCHAIN=local bash -c "$1"`

// A user is one who has a home and a shell in the root. The shell's variables and directory outlive a
// command.
type user struct {
	*root
	home string
}

// run runs a command line in the shell of the user and returns what it took and printed.
func (u user) run(ctx context.Context, line string) (took times, output string, err error) {
	script := fmt.Sprintf("cd; [ ! -e ~/.session ] || . ~/.session\n%s\ncode=$?; { export -p; printf 'cd %%q\\n' \"$PWD\"; } >~/.session; exit $code", line)
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside,
		u.dir, script, u.home, "file://"+proxyDir+","+u.goproxy)
	took, output, err = measured(cmd)
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", line, err, output)
	}
	return took, output, err
}

// command runs a program outside of the root. Its output belongs to the error.
func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, output)
	}
	return nil
}
