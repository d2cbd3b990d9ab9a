package server

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// An account is an operating-system user for a server to run as, since some
// refuse to run as root. A nil account is the caller's own.
type account struct{ user, group uint32 }

func isRoot() bool { return os.Geteuid() == 0 }

// lookUp finds an account by its user's name.
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

// unprivileged returns an account for servers that refuse to run as root, nil
// when the caller is not root. Debian's packages make postgres; nobody is
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

// own makes a directory or a file the account's. The directories above it must
// let the account pass, as a [Scratch] does.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.user), int(a.group))
}
