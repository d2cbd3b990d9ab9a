package server

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

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
